"""Arguments of an op: its record's samples, changed at random, or made from the schema alone."""

import functools

import tinygrad_ext as tg
from tinygrad_ext.ops.samples import zeros
from tinygrad_ext.testing import layouts, sweep

from . import nonsense, values


@functools.lru_cache(maxsize=8000)
def _samples(op, dtype):
    try:
        return sweep.samples(op, dtype)
    except Exception:  # the record has none in this dtype
        return []


def draw(rng, op):
    """{name: value} of one call of an op, in the order of its schema."""
    found = _samples(op, rng.choice(sweep.ALL_DTYPES)) if rng.random() < 0.7 else []
    if not found:
        return _from_schema(rng, op.schema)
    named = _named(op.schema, rng.choice(found))
    named = layouts.map_tensors(named, lambda t: values.laid_out(rng, t.detach().clone()))
    for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 2))):
        arg = rng.choice(op.schema.args) if op.schema.args else None
        if arg is not None:
            named[arg.name] = value(rng, arg)
    return named


def _named(schema, sample):
    """The values of a sample by the names of the arguments; what goes beyond the schema keeps a name of its own."""
    places = [a for a in schema.args if not a.kwarg_only]
    named = {a.name: v for a, v in zip(places, sample.args)}
    if len(sample.args) > len(places) and places:  # sizes one by one
        named[places[-1].name] = list(sample.args[len(places) - 1 :])
    return {**named, **sample.kwargs}


def _from_schema(rng, schema):
    """Every argument at random; like() of a shape, so that many calls get through."""
    common, dtype = values.shape(rng), rng.choice(values.DTYPES)
    return {
        a.name: value(rng, a, common if rng.random() < 0.7 else None, dtype if rng.random() < 0.7 else None)
        for a in schema.args
        if not a.has_default or rng.random() < 0.3
    }


def value(rng, arg, sizes=None, dtype=None):
    """One argument at random, now and then of a type that is not the declared one."""
    chance = rng.random()
    if chance < 0.04:
        return nonsense.other(rng)
    if chance < 0.06:
        return values.tensor(rng)
    if (arg.optional and chance < 0.25) or (chance < 0.08):
        return None
    if not arg.is_list:
        return _one(rng, arg.type, sizes, dtype)
    if arg.type in ("int", "SymInt") and chance < 0.9:
        return nonsense.integers(rng)
    length = arg.size or (rng.randint(0, 3) if chance < 0.93 else rng.choice((65, 70, 130)))
    made = [_one(rng, arg.type, sizes, dtype) for _ in range(length)]
    return tuple(made) if chance < 0.5 else made


def _one(rng, type, sizes, dtype):
    if type == "Tensor":
        if rng.random() < 0.06:
            return number_or_meta(rng)
        made = index_like(rng, sizes) if rng.random() < 0.2 else values.tensor(rng, dtype, sizes)
        return values.dressed(rng, values.laid_out(rng, made))
    make = nonsense.BY_TYPE.get(type)
    return make(rng) if make else nonsense.other(rng)


def number_or_meta(rng):
    """What comes where a tensor is expected."""
    return nonsense.number(rng) if rng.random() < 0.6 else zeros(*values.shape(rng)).to("meta")


def index_like(rng, sizes):
    """Integers that may be indices: small, negative, just beyond an edge, or far off."""
    sizes = values.shape(rng) if sizes is None else sizes
    count = 1
    for s in sizes:
        count *= s
    edges = (0, 0, 1, 1, 2, 3, -1, 4, 5, 33) if rng.random() < 0.7 else (-(2**63), 2**63 - 1, 2**62, -5, 2**31, 0)
    return tg.tensor(rng.choices(edges, k=count), dtype=tg.int64).reshape(sizes)
