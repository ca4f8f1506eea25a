"""Calls that once read memory that was not there, never returned or raised the wrong thing."""

import pytest

import tinygrad_ext as tg


def on_meta(*shape):
    return tg.empty(shape, device="meta")


MIXED = {
    "operands": lambda: tg.zeros(3) + on_meta(3),
    "in-place": lambda: tg.zeros(3).add_(on_meta(3)),
    "in-place, 0-dim": lambda: tg.zeros(()).add_(on_meta()),
    "pointwise out": lambda: tg.add(on_meta(3), on_meta(3), out=tg.zeros(3)),
    "pointwise meta out": lambda: tg.add(tg.zeros(3), tg.zeros(3), out=on_meta(3)),
    "reduction out": lambda: tg.sum(on_meta(3, 3), 0, out=tg.zeros(3)),
    "two outs": lambda: tg.max(on_meta(3, 3), 0, out=(tg.zeros(3), tg.zeros(3, dtype=tg.int64))),
    "matrices": lambda: tg.mm(tg.zeros(3, 3), on_meta(3, 3)),
    "matrix out": lambda: tg.mm(on_meta(3, 3), on_meta(3, 3), out=tg.zeros(3, 3)),
    "kernel in-place": lambda: tg.zeros(3).masked_fill_(tg.empty(3, device="meta", dtype=tg.bool), 1.0),
}


@pytest.mark.parametrize("call", MIXED.values(), ids=MIXED)
def test_cpu_and_meta_do_not_mix(call):
    with pytest.raises(RuntimeError, match="device"):
        call()


def test_a_number_on_the_cpu_goes_with_meta():
    assert (tg.tensor(1.0) + on_meta(3)).device.type == "meta"


@pytest.mark.filterwarnings("ignore")
def test_each_of_several_outs_must_be_writable():
    import numpy as np

    lent = np.zeros(2, dtype="f4")
    lent.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        tg.max(tg.ones(2, 2), 0, out=(tg.from_numpy(lent), tg.zeros(2, dtype=tg.int64)))
    assert not lent.any()


@pytest.mark.parametrize(
    "call",
    [
        lambda: tg.tril_indices(2**40, 2, 100),
        lambda: tg.triu_indices(2, 2**60),
        lambda: tg.tensor(range(2**50)),
        lambda: tg.zeros(3)[range(2**50)],
    ],
)
def test_huge_requests_fail_at_once(call):
    with pytest.raises((MemoryError, RuntimeError, IndexError)):
        call()


@pytest.mark.parametrize("offset", range(-5, 6))
def test_triangle_indices_count_their_elements(offset):
    import numpy as np

    for rows in range(5):
        for columns in range(5):
            assert tg.tril_indices(rows, columns, offset).tolist() == [
                i.tolist() for i in np.tril_indices(rows, offset, columns)
            ]
            assert tg.triu_indices(rows, columns, offset).tolist() == [
                i.tolist() for i in np.triu_indices(rows, offset, columns)
            ]


def test_diag_embed_on_meta_checks_its_dims():
    with pytest.raises(RuntimeError, match="identical"):
        on_meta(2, 3).diag_embed(0, -1, -1)


def holds_itself():
    found = [1]
    found.append(found)
    return found


class Endless:
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        return 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: tg.tensor(holds_itself()),
        lambda: tg.zeros(3)[None, holds_itself()],
        lambda: tg.tensor(Endless(2**62)),
        lambda: tg.result_type(None, None),
        lambda: tg.result_type("a", 1),
        lambda: tg.Tensor._make_subclass(int, tg.zeros(2)),
        lambda: tg.Tensor._make_subclass(None, tg.zeros(2)),
        lambda: tg.as_tensor([1], dtype="float32"),
        lambda: tg.asarray([1], dtype=float),
        lambda: tg.as_tensor(1, dtype=b"ab"),
    ],
)
def test_objects_that_are_no_data_raise(call):
    with pytest.raises((TypeError, ValueError, MemoryError, IndexError)):
        call()


def test_joining_does_not_trust_a_list_subclass():
    class Longer(list):
        def __len__(self):
            return 5

    assert tg.stack(Longer([tg.ones(2)])).tolist() == [[1, 1]]


def test_extended_precision_numbers_are_rounded():
    import numpy as np

    t = tg.zeros(2)
    t[0] = np.longdouble(1)
    assert (t + np.longdouble(1)).tolist() == [2, 1]
