"""Specs of trees as text: PyTorch's text, and what comes back."""

import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from tinygrad_ext.utils import _pytree as trees

TREES = [
    {"b": 1, "a": [1, (2, None)]},
    OrderedDict(x=1, a=(2,)),
    defaultdict(list, {"k": [1]}),
    deque([1, 2], maxlen=5),
    (),
    1,
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_spec_comes_back_and_its_text_is_pytorchs(tree):
    leaves, spec = trees.tree_flatten(tree)
    text = trees.treespec_dumps(spec)
    assert trees.treespec_loads(text) == spec and trees.tree_unflatten(leaves, trees.treespec_loads(text)) == tree
    pytest.importorskip("torch")
    theirs = importlib.import_module("torch.utils._pytree")
    assert text == theirs.treespec_dumps(theirs.tree_structure(tree))
    assert trees.treespec_loads(theirs.treespec_dumps(theirs.tree_structure(tree), protocol=1)) == spec


def test_a_defaultdict_without_a_default_comes_back():
    spec = trees.tree_structure(defaultdict(None, {"a": 1}))
    assert trees.treespec_loads(trees.treespec_dumps(spec)) == spec


class Pair:
    """A container of two."""

    def __init__(self, first, second, told):
        self.parts, self.told = [first, second], told


def test_classes_that_are_registered_with_a_name():
    def take(pair):
        return pair.parts, pair.told

    def put(parts, told):
        return Pair(*parts, told)

    trees.register_pytree_node(
        Pair, take, put, serialized_type_name="tests.Pair", to_dumpable_context=str, from_dumpable_context=int
    )
    try:
        spec = trees.tree_structure([Pair(1, 2, 7)])
        text = trees.treespec_dumps(spec)
        assert json.loads(text)[1]["children_spec"][0]["context"] == "7" and trees.treespec_loads(text) == spec
    finally:
        trees._deregister_pytree_node(Pair)
    with pytest.raises(NotImplementedError, match=r"tests\.Pair"):
        trees.treespec_loads(text)
    with pytest.raises(TypeError, match="must be None or registered"):
        trees.register_pytree_node(Pair, take, put, to_dumpable_context=str)
    trees.register_pytree_node(Pair, take, put)
    try:
        with pytest.raises(NotImplementedError, match="serialized_type_name"):
            trees.treespec_dumps(trees.tree_structure(Pair(1, 2, 7)))
    finally:
        trees._deregister_pytree_node(Pair)


def test_what_cannot_be_text_or_comes_of_a_stranger_is_refused():
    for spec, error in (
        (1, TypeError),
        (trees.tree_structure({object(): 1}), TypeError),
        (trees.tree_structure(namedtuple("Named", "a")(1)), NotImplementedError),
        (trees.tree_structure(defaultdict(Pair)), NotImplementedError),
    ):
        with pytest.raises(error):
            trees.treespec_dumps(spec)
    with pytest.raises(ValueError, match="protocol"):
        trees.treespec_dumps(trees.tree_structure(1), 7)
    with pytest.raises(ValueError, match="protocol"):
        trees.treespec_loads("[7, {}]")
    text = trees.treespec_dumps(trees.tree_structure(defaultdict(list)))
    for old, new in (('module": "builtins', 'module": "os'), ('"list"', '"eval"'), ('"list"', '"none"')):
        assert old in text
        with pytest.raises(NotImplementedError):
            trees.treespec_loads(text.replace(old, new))
