"""Arguments and results of autograd.functional: tuples in and out, fresh inputs, and the checks of strict mode."""

from tinygrad_ext.autograd.engine import grad
from tinygrad_ext.core.data.slots import get_slot
from tinygrad_ext.core.data.tensor import Tensor


def tensors(values, what, who):
    """(whether it was a tuple, the tuple); TypeError when something else than tensors is in it."""
    several = isinstance(values, tuple)
    row = values if several else (values,)
    for i, value in enumerate(row):
        if not isinstance(value, Tensor):
            where = f"value at index {i}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {who} must be either a Tensor or a tuple of Tensors but the {where} has type "
                f"{type(value)}."
            )
    return several, row


def results(func, inputs, who):
    """(whether func returned a tuple, its outputs)."""
    return tensors(func(*inputs), "outputs of the user-provided function", who)


def fresh(inputs, create_graph, requires_grad=True):
    """New tensors for the inputs, so that the ones func may have captured are told from its arguments."""
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(requires_grad) for t in inputs
    )


def vector(v, like, several, create_graph, who, missing):
    """v as a tuple that fits `like`; ones where it is None, if `like` is a single element (else: `missing`)."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {missing} a single Tensor with a single element.")
        return (get_slot("ones_like")(like[0]),)
    v = fresh(tensors(v, "v", who)[1], create_graph, requires_grad=False)
    if len(v) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (given, wanted) in enumerate(zip(v, like)):
        if given.shape != wanted.shape:
            entry = f"Entry {i} in " if several else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {wanted.shape} but got {given.shape}.")
    return v


def packed(row, several):
    """The tuple, or its only element when it did not come as a tuple."""
    return row if several else row[0]


def cut(row, create_graph):
    """The tensors without their graph, unless it was asked for."""
    return tuple(row) if create_graph else tuple(t.detach() for t in row)


def zeros(t, requires_grad=False):
    """Zeros of a tensor's shape, dtype and device."""
    return get_slot("zeros")(t.shape, t.dtype, t.device).requires_grad_(requires_grad)


def gradients(outputs, inputs, seeds=None, create_graph=False, retain_graph=None):
    """`grad` that passes over outputs without a graph, and over None; None where an input is not used."""
    seeds = (None,) * len(outputs) if seeds is None else seeds
    pairs = [(out, seed) for out, seed in zip(outputs, seeds) if out is not None and out.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        [out for out, _ in pairs],
        inputs,
        [seed for _, seed in pairs],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )


# ---- strict mode: what would be a tensor of zeros is an error ------------------------------------------------------

_STRICT = "This is not allowed in strict mode"
_NO_GRAPH = {
    "outputs": (
        "Output {i} of the user-provided function does not require gradients. In strict mode every output must be "
        "computed from the inputs by differentiable operations."
    ),
    "gradients": (
        "The gradient with respect to input {i} is independent of the inputs of the user-provided function. "
        f"{_STRICT}: their derivative would be zero."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} "
        f"is independent of the input. {_STRICT}: is the function linear in it?"
    ),
    "hessian": (
        "The hessian of the user-provided function with respect to input {i} is independent of the input. "
        f"{_STRICT}: the function must be differentiable three times."
    ),
}
_UNUSED = {
    "vjp": "The output of the user-provided function is independent of input {i}. ",
    "jvp": (
        "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double "
        "backward trick to compute forward mode gradients. "
    ),
    "vhp": "The jacobian of the user-provided function is independent of input {i}. ",
    "hvp": "The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. ",
}
_KIND = {"vjp": "jacobian", "jvp": "jacobian", "vhp": "hessian", "hvp": "hessian"}


def require_graph(row, what):
    """Strict mode: RuntimeError when one of the tensors is missing or needs no gradient."""
    for i, t in enumerate(row):
        if t is None:
            raise RuntimeError(f"The output of the user-provided function is independent of input {i}. {_STRICT}.")
        if not t.requires_grad:
            raise RuntimeError(_NO_GRAPH[what].format(i=i))


def filled(row, like, strict, create_graph, who):
    """Zeros in place of None; in strict mode a RuntimeError."""
    found = []
    for i, (t, reference) in enumerate(zip(row, like)):
        if t is None and strict:
            raise RuntimeError(_UNUSED[who].format(i=i) + _STRICT + ".")
        if t is not None and strict and create_graph and not t.requires_grad:
            raise RuntimeError(
                f"The {_KIND[who]} of the user-provided function is independent of input {i}. {_STRICT} when "
                "create_graph=True."
            )
        found.append(zeros(reference) if t is None else t)
    return tuple(found)
