"""Turns a function of SciPy into an op: `add(register, schema, grad, ...)`.

SciPy computes in float64, whatever came, and the result is rounded to the dtype of the arguments; integers give the
default float dtype. That costs time in float32 and saves its users the surprises of recurrences in single precision.
SciPy is imported by the first call, so that a look at the namespace costs nothing.
"""

import importlib

import tinygrad_ext as tg
from tinygrad_ext.ops import samples as sampling
from tinygrad_ext.ops import shapes

SAMPLES = {1: sampling.unary, 2: sampling.binary, 3: sampling.ternary}


def add(register, schema, grad, *, domain, doc, fn=None, samples=None, returns="Tensor", **fields):
    """Register special::<schema> with its derivative rules.

    fn(*arrays and numbers) computes it; by default SciPy's function of that name does. domain: interval of each
    tensor for tests. returns: as in a schema; more than one result have names.
    """
    name, count = schema.partition("(")[0], schema.count("Tensor ")
    register(
        f"special::{schema} -> {returns}",
        kernel=_kernel(name, fn or _scipy(name)),
        shape=_shape(name, returns.count("Tensor")),
        grad=grad,
        types="int float half",
        batch="pointwise" if returns == "Tensor" else None,
        variants="function out" if returns == "Tensor" else "function",
        domain=domain,
        samples=samples or SAMPLES[count],
        reference=fn or f"scipy.special.{name}",
        doc=doc,
        **fields,
    )


def no_derivative(op, argument, instead):
    """A rule that refuses: there is no closed form. Raises NotImplementedError when that gradient is asked for."""

    def rule(grad):
        raise NotImplementedError(
            f"special::{op} has no derivative by '{argument}' in closed form; {instead}, or pass {argument}.detach()"
        )

    return rule


def fixed_first(make):
    """Samples whose first tensor gets no gradient, because there is none."""
    for a, b in (((3, 4), (3, 4)), ((4,), (2, 4)), ((), (3,)), ((0, 3), (3,))):
        yield sampling.Sample(make(*a).detach(), make(*b))


def _scipy(name):
    return lambda *args: getattr(importlib.import_module("scipy.special"), name)(*args)


def _kernel(name, fn):
    def kernel(*args):
        dtype = _dtype(name, args)
        result = fn(*[a.detach().to(tg.float64).numpy() if isinstance(a, tg.Tensor) else a for a in args])
        if isinstance(result, tuple):
            return tuple(tg.as_tensor(r).to(dtype) for r in result)
        return tg.as_tensor(result).to(dtype)

    return kernel


def _dtype(name, args):
    """Of the result: what the tensors promote to, the default float dtype for integers."""
    dtype = shapes.broadcast(*args).dtype
    if dtype.is_complex:
        raise NotImplementedError(f"\"special::{name}\" not implemented for '{dtype}': the arguments must be real")
    return dtype if dtype.is_floating_point else tg.get_default_dtype()


def _shape(name, count):
    def shape(*args):
        made = [shapes.meta(shapes.broadcast(*args).shape, _dtype(name, args)) for _ in range(count)]
        return made[0] if count == 1 else tuple(made)

    return shape
