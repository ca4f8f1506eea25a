"""Every op under vmap, of tensors that wrap the operands: as of the plain ones."""

import warnings

import pytest

import tinygrad_ext as tg
from tests.func.test_vmap_ops import NOT_COMPARED, OPS, Batched
from tests.overrides.test_wrappers import InSlot, plain
from tinygrad_ext.func import vmap
from tinygrad_ext.testing import sweep
from tinygrad_ext.utils._pytree import tree_leaves

NAMES = sorted(OPS.keys() - NOT_COMPARED)


def outcome(call, tensors):
    try:
        return tree_leaves(plain(vmap(lambda *t: call(*t))(*tensors)))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("part", range(8))
def test_wrapped_operands_give_what_plain_ones_do(part):
    compared = 0
    for name in NAMES[part::8]:
        sample = next(iter(sweep.samples(OPS[name], "float32")), None)
        if sample is None or not sweep.leaves(sample.args, sample.kwargs, tg.Tensor):
            continue
        call = Batched(OPS[name], sample)
        rows = [t.expand(3, *t.shape).clone() for t in call.tensors]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = outcome(call, rows)
            if isinstance(expected, type):  # some ops look at elements, which vmap refuses
                continue
            found = outcome(call, list(map(InSlot, rows)))
        assert not isinstance(found, type), f"{name}: {found}"
        tg.testing.assert_close(found, expected, equal_nan=True, msg=lambda text, name=name: f"{name}: {text}")
        compared += 1
    assert compared > 80
