"""What an op refuses of a sample it refuses of a batch of them, whose dimension is none of a sample's: all ops."""

import warnings

import pytest
from tinygrad_ext.core.call.levels import operation

import tinygrad_ext as tg
from tinygrad_ext.func import vmap
from tinygrad_ext.registry import ops

NAMES = sorted(name for name, op in ops.items() if any(a.type == "Tensor" for a in op.schema.args))
PLAIN = {"int": 0, "float": 1.0, "bool": False, "Scalar": 1.0, "str": ""}
# These look at elements, which what is asked about shapes has none of.
BY_ELEMENTS = ("aten::_vdot", "aten::binary_cross_entropy")


def call_of(op):
    """A function of one tensor, which stands for all that the op takes; other arguments are plain ones."""
    args = op.schema.args
    defaults = [a.default if a.has_default else [PLAIN.get(a.type)] if a.is_list else PLAIN.get(a.type) for a in args]

    def call(t):
        row = [([t, t] if a.is_list else t) if a.type == "Tensor" else d for a, d in zip(args, defaults)]
        return operation(op)(*row)

    return call


def refusal(f, x):
    try:
        f(x)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("part", range(8))
def test_a_batch_of_what_is_refused_is_refused(part):
    for name in NAMES[part::8]:
        if name in BY_ELEMENTS:
            continue
        call = call_of(ops[name])
        for shape in ((), (1,), (2,)):
            x = tg.full(shape, 0.75)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                alone = refusal(call, x)
                if alone is None or isinstance(alone, NotImplementedError):
                    continue
                batched = refusal(vmap(call, randomness="same"), x.expand(3, *shape).clone())
            assert batched is not None, f"{name} of {shape}: refused alone ({alone}), and not as a sample"
