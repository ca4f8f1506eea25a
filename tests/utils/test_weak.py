"""Weak dictionaries and references by identity."""

import copy
import weakref

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


def test_keys_are_known_by_identity_and_go():
    a, b = tg.ones(2), tg.ones(2)
    d = WeakTensorKeyDictionary({a: "a"})
    d[b] = "b"
    assert (d[a], d[b], len(d)) == ("a", "b", 2) and tg.ones(2) not in d and 3 not in d
    with pytest.raises(KeyError):
        d[tg.ones(2)]
    del a
    collect()
    assert list(d.values()) == ["b"] and next(iter(d)) is b
    d[b] = "again"
    assert d.pop(b) == "again" and not d


def test_entries_may_go_while_it_is_walked_over():
    held = [tg.ones(1) for _ in range(8)]
    d = WeakIdKeyDictionary((t, i) for i, t in enumerate(held))
    seen = 0
    for key in d:
        seen += 1
        del key
        held.clear()
    assert 1 <= seen <= 2 and len(d) == 0


def test_the_dictionary_itself_is_not_held_by_its_keys():
    key = tg.ones(1)
    d = WeakIdKeyDictionary({key: [1]})
    copied, deep = d.copy(), copy.deepcopy(d)
    assert copied[key] is d[key] and deep[key] is not d[key] and deep[key] == [1]
    assert (d | {key: 2})[key] == 2 and d[key] == [1] and len(d.keyrefs()) == 1
    gone = weakref.ref(d)
    del d
    collect()
    assert gone() is None


def test_references_compare_by_identity():
    a, b = tg.ones(2), tg.ones(2)
    assert WeakIdRef(a) == WeakIdRef(a) != WeakIdRef(b) and hash(WeakIdRef(a)) == hash(WeakIdRef(a))
    r = TensorWeakRef(a)
    assert r() is a and r == TensorWeakRef(a) and r != TensorWeakRef(b) and len({r, TensorWeakRef(a)}) == 1
    del a
    collect()
    assert r() is None and r == r and r != TensorWeakRef(b)
    with pytest.raises(TypeError, match="expected a Tensor"):
        TensorWeakRef(3)
