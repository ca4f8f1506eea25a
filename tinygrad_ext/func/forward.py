"""Forward mode as a function of functions: jvp, linearize."""

from tinygrad_ext.autograd.engine import gradients as gradients_of
from tinygrad_ext.autograd.modes import not_inference, recording
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.registry import functions
from tinygrad_ext.utils._pytree import tree_map
from tinygrad_ext.utils._trees import flattened, unflatten

from .dual import Dual
from .nesting import bottoms, severed
from .pairing import alike
from .reverse import check_outputs, vjp

_SAID = "jvp(f, primals, tangents)"


@boundary
def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The value of a function and its derivative along the tangents: (output, product with the Jacobian).

    Arguments:
        func: function of the primals that returns tensors, in containers too.
        primals: tuple of arguments, where the function is differentiated.
        tangents: the direction, of the structure, shapes and dtypes of the primals.
        strict: raise where an output does not depend on the inputs, instead of giving zeros.
        has_aux: func returns (output, others), and the result is (output, product, others).

    Everything is computed in one pass, whose memory does not grow with the length of the computation. Raises
    RuntimeError when tangents do not fit the primals.

    Example::

        jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))         # (0, 2)
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_SAID}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, spec = flattened(primals)
    slopes, built = flattened(tangents)
    if spec != built:
        raise RuntimeError(
            f"{_SAID}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            "tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {built}"
        )
    _check_tensors(flat, "primals")
    _check_tensors(slopes, "tangents")
    with not_inference(), Dual() as level:
        duals = [checked_pair(level, p, t) for p, t in zip(flat, slopes)]
        output = func(*unflatten(duals, spec))
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    f"{_SAID}: output of function f should be a tuple: (output, aux) if has_aux is True, got "
                    f"{type(output).__name__}"
                )
            output, aux = output
            aux = tree_map(level.primal, aux)
        outputs, made = flattened(output)
        check_outputs(outputs, _SAID)
        found = [level.suspend(_unpacked, level, o, strict) for o in outputs]
    values = unflatten([p for p, _ in found], made)
    products = unflatten([_product(p, t) for p, t in found], made)
    return (values, products, aux) if has_aux else (values, products)


def checked_pair(level, primal, tangent):
    """A dual tensor of what a user gave."""
    if primal.is_inference() or tangent.is_inference():
        primal, tangent = level.suspend(primal.clone), level.suspend(tangent.clone)
    if not level.fits(primal, tangent):
        tangent = _fitted(primal, tangent)
    made = level.pair(primal, level.suspend(alike, tangent, primal))
    made.value.loose = True  # it is the user's
    return made


def _fitted(primal, tangent):
    """A tangent in the dtype of its primal; RuntimeError or ValueError where they do not belong together."""
    for what, tensor in (("primal", primal), ("tangent", tangent)):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {tensor.dtype}")
    if tuple(primal.shape) != tuple(tangent.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tangent.dtype != primal.dtype:
        if tangent.is_complex() != primal.is_complex():
            raise RuntimeError(
                f"Expected the tangent to be of the primal's dtype {primal.dtype}, but got {tangent.dtype}"
            )
        tangent = tangent.to(primal.dtype)
    return tangent


def unpacked(level, value):
    """A value and its tangent, zeros for one that follows no tangent; None for one that has none."""
    primal, tangent = level.primal(value), level.tangent(value)
    if tangent is None and level.owns(value) and value.value.still:
        tangent = functions["zeros_like"](primal)
    return primal, tangent


def without_level(value):
    """A value after its level ended: dual tensors are their primals then."""
    return value.value.primal if type(value) is Carried and isinstance(value.level, Dual) else value


def _check_tensors(values, what):
    if not values:
        raise RuntimeError(f"{_SAID}: Expected {what} to contain at least one Tensor.")
    for v in values:
        if not isinstance(v, Tensor):
            raise RuntimeError(
                f"{_SAID}: Expected {what} to only contain Tensors, got unsupported type {type(v).__name__}"
            )


def _unpacked(level, value, strict):
    primal, tangent = level.primal(value), level.tangent(value)
    if tangent is None and strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    return primal, tangent


def _product(primal, tangent):
    return functions["zeros_like"](primal) if tangent is None else tangent


@boundary
def linearize(func, *primals):
    """The value of a function, and the function that multiplies its Jacobian with vectors: (output, jvp_fn).

    func runs once; jvp_fn(*tangents) takes tensors of the primals' structure, shapes and dtypes, any number of times.
    It holds what the function computed, as a backward pass does.

    Example::

        output, push = linearize(torch.sin, torch.tensor(0.0))
        push(torch.tensor(2.0))                                            # 2
    """
    flat, spec = flattened(primals)
    _check_tensors(flat, "primals")
    tracked = is_grad_enabled()
    with recording():
        output, back = vjp(func, *primals)
        outputs, made = flattened(output)
        seeds = [functions["zeros_like"](o).requires_grad_() for o in outputs]
        given = unflatten(seeds, made)
        pulled, _ = flattened(back(*given) if isinstance(given, tuple) else back(given))
    if not tracked:
        outputs = [severed(o) for o in outputs]
    outer = tracked and any(b.requires_grad for p in flat for b in bottoms(p))

    @boundary
    def jvp_fn(*tangents):
        """The products of the Jacobian with tangents."""
        slopes, built = flattened(tangents)
        if built != spec:
            raise RuntimeError(f"Expected the tangents {built} to have the same argspec as the primals {spec}")
        for i, (t, p) in enumerate(zip(slopes, flat)):
            for what in ("shape", "device", "dtype"):
                if getattr(t, what) != getattr(p, what):
                    raise RuntimeError(
                        f"tangent:{i} with {what} {getattr(t, what)} in flattened pytree doesn't match the {what} "
                        f"{getattr(p, what)} of the corresponding primal."
                    )
        roots = [(g, t) for g, t in zip(pulled, slopes) if g.requires_grad]
        got = [None] * len(seeds)
        if roots:
            create = is_grad_enabled() and (outer or any(t.requires_grad for t in slopes))
            got = gradients_of([g for g, _ in roots], seeds, [t for _, t in roots], True, create, True)
        return unflatten([o.new_zeros(o.shape) if g is None else g for g, o in zip(got, outputs)], made)

    return unflatten(outputs, made), jvp_fn
