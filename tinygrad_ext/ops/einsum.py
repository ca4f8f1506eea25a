"""Sums over products of tensors, written by subscripts: einsum and tensordot.

The subscripts become a plan, a list of tensor operations (einsum_plan.py), that is kept for their next use.
"""

import tinygrad_ext as tg
from tinygrad_ext.core.call.elsewhere import class_name, how_to_convert
from tinygrad_ext.ops.einsum_plan import DOTS, parse, plan_dot, plan_equation, plan_lists
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

# ---- computing -----------------------------------------------------------------------------------------------------


def _run(plan, operands):
    """Do what a plan says."""
    steps, place = plan
    values = list(operands)
    for name, first, args, second in steps:
        method = getattr(values[first], name)
        values.append(method(*args) if second is None else method(values[second]))
    return values[place]


def _kept(plan, shapes):
    """The function that looks a plan up, and makes it; where sizes belong to a program that is captured, makes it."""
    return plan if all(type(s) is tg.Size for s in shapes) else plan.__wrapped__


def _einsum(equation, tensors, path=None):
    """einsum by equation string. `path` is accepted: the operands are taken from left to right."""
    if len(tensors) == 0:
        parse(equation, 0)
        raise ValueError(_NOTHING)
    shapes = tuple([t.shape for t in tensors])
    return _run(_kept(plan_equation, shapes)(equation, shapes), tensors)


_NOTHING = (
    "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts "
    "list, as in einsum('ij,jk->ik', a, b) or einsum(a, [0, 1], b, [1, 2], [0, 2])"
)


def _subscripts(given):
    if not isinstance(given, (list, tuple)):
        raise ValueError(_NOTHING)
    for s in given:
        if s is not Ellipsis and (not isinstance(s, int) or not 0 <= s < DOTS):
            raise ValueError(
                f"einsum(): subscript in subscript list is not within the valid range [0, {DOTS}), got {s!r}"
            )
    return tuple([None if s is Ellipsis else s for s in given])


def _einsum_lists(operands):
    """einsum(a, [0, 1], b, [1, 2], [0, 2]): numbers for subscripts, the output's at the end or left away."""
    for o in operands:
        if how_to_convert(o):
            raise TypeError(f"einsum(): operands must be Tensors, not {class_name(o)}{how_to_convert(o)}")
    if len(operands) < 2 or not isinstance(operands[0], tg.Tensor):
        raise ValueError(_NOTHING)
    output = _subscripts(operands[-1]) if len(operands) % 2 else None
    pairs = operands[: len(operands) // 2 * 2]
    tensors = list(pairs[::2])
    if not all(isinstance(t, tg.Tensor) for t in tensors):
        raise ValueError(_NOTHING)
    terms, shapes = tuple(map(_subscripts, pairs[1::2])), tuple([t.shape for t in tensors])
    return _run(_kept(plan_lists, shapes)(terms, output, shapes), tensors)


# ---- tensordot -----------------------------------------------------------------------------------------------------


def _dot_dims(a, b, dims):
    """The dimensions to sum over, as two lists."""
    if isinstance(dims, (tuple, list)):
        first, second = (
            [list(d) if isinstance(d, (tuple, list)) else [d] for d in dims] if len(dims) == 2 else (dims[0], [])
        )
    elif hasattr(dims, "tolist") and dims.numel() > 1:
        first, second = dims.tolist()
    else:
        n = int(dims)
        if n < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={n}")
        if n > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={n} for tensors of {a.dim()} and {b.dim()} "
                "dimensions"
            )
        return list(range(-n, 0)), list(range(n))
    if len(first) != len(second):
        raise RuntimeError(
            f"both dimension lists should have same length: tensordot() got {list(first)} and {list(second)}"
        )
    return first, second


def _tensordot(a, b, dims):
    first, second = _dot_dims(a, b, dims)
    # summing a dimension of size 1 against a longer one widens small integers in einsum, here not
    plan = _kept(plan_dot, (a.shape, b.shape))(a.shape, b.shape, tuple(first), tuple(second))
    return _run(plan, (a, b)).to(a.dtype)


# ---- records -------------------------------------------------------------------------------------------------------


def _samples(make):
    for equation, *shapes in (
        ("ij,jk->ik", (2, 3), (3, 4)),
        ("ij,jk", (2, 3), (3, 4)),
        ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
        ("ii->i", (3, 3)),
        ("ii", (3, 3)),
        ("ij->ji", (2, 3)),
        ("i,j->ij", (2,), (3,)),
        ("i,i->", (3,), (3,)),
        ("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2)),
        ("ij->j", (2, 3)),
        ("b...,b...->...", (2, 3), (2, 3)),
        ("ij,ij->ij", (2, 3), (1, 3)),
        ("ab,bc,cd->ad", (2, 3), (3, 2), (2, 2)),
        ("bhid,bhjd->bhij", (1, 2, 3, 4), (1, 2, 2, 4)),
        ("a b , b -> a", (2, 3), (3,)),
        ("ij,kj->", (2, 3), (2, 3)),
        ("->", ()),
    ):
        yield Sample(equation, *[make(*s, low=-2, high=2) for s in shapes])


def _list_samples(make):
    yield Sample(make(2, 3), [0, 1], make(3, 4), [1, 2], [0, 2])
    yield Sample(make(2, 3), [0, 1])
    yield Sample(make(2, 2, 3), [Ellipsis, 1], [1, Ellipsis])


def _dot_samples(make):
    yield Sample(make(2, 3, 4, low=-2, high=2), make(3, 4, 2, low=-2, high=2))
    yield Sample(make(2, 3, low=-2, high=2), make(3, 2, low=-2, high=2), 1)
    yield Sample(make(2, 3), make(4), dims=0)
    yield Sample(make(2, 3, 4, low=-2, high=2), make(4, 5, 2, low=-2, high=2), dims=([0, 2], [2, 0]))


def _dot_reference(a, b, dims=2):
    import numpy

    return numpy.tensordot(a, b, dims)


def _call(*args):
    def call():
        return tg.einsum(*[tg.zeros(a) if isinstance(a, tuple) else a for a in args])

    return call


op(
    "aten::einsum(str equation, Tensor(a)[] operands, *, int[]? path=None) -> Tensor(a)",
    compose=_einsum,
    variants="function",
    tags="varargs",
    types="int float half complex",
    samples=_samples,
    reference="numpy.einsum",
    errors=[
        (
            _call("ij,jk->ik", (2, 3), (4, 4)),
            RuntimeError,
            "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3",
        ),
        (_call("ij->", (2, 3), (2, 3)), RuntimeError, "more operands were provided than specified in the equation"),
        (_call("ij,jk->ik", (2, 3)), RuntimeError, "fewer operands were provided than specified in the equation"),
        (
            _call("ijk->ik", (2, 3)),
            RuntimeError,
            "the number of subscripts in the equation (3) does not match the number of "
            "dimensions (2) for operand 0 and no ellipsis was given",
        ),
        (_call("ij->ii", (2, 3)), RuntimeError, "output subscript i appears more than once in the output"),
        (
            _call("ij->ik", (2, 3)),
            RuntimeError,
            "output subscript k does not appear in the equation for any input operand",
        ),
        (_call("i1->i", (2, 3)), RuntimeError, "invalid subscript given at index 1 in the equation string"),
        (_call("i...j...->i", (2, 3)), RuntimeError, "found '.' for operand 0 for which an ellipsis was already found"),
        (_call("i..->i", (2, 3)), RuntimeError, "found '.' for operand 0 that is not part of any ellipsis"),
        (
            _call("ii->i", (2, 3)),
            RuntimeError,
            "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2",
        ),
        (_call("ij"), ValueError, "must specify the equation string and at least one operand"),
    ],
    doc="Sum of products over subscripts: 'ij,jk->ik' is a matrix product. Without '->' the output has the subscripts "
    "that appear once, in alphabetical order; '...' stands for dimensions that broadcast.",
)

op(
    "aten::einsum.sublists(Any[] operands) -> Tensor(a)",
    compose=_einsum_lists,
    variants="function",
    tags="varargs",
    types="int float half complex",
    samples=_list_samples,
    reference="numpy.einsum",
    errors=[
        (_call(3), ValueError, "must specify the equation string and at least one operand"),
        (
            _call((2, 3), [0, 60], [1, 0]),
            ValueError,
            "subscript in subscript list is not within the valid range [0, 52)",
        ),
    ],
    doc="einsum(a, [0, 1], b, [1, 2], [0, 2]): subscripts given as numbers after each operand.",
)

op(
    "aten::tensordot(Tensor a, Tensor b, Any dims=2) -> Tensor",
    compose=_tensordot,
    variants="function out",
    types="int float half complex",
    samples=_dot_samples,
    reference=_dot_reference,
    doc="Sum over pairs of dimensions: the last `dims` of a with the first of b, or those in two lists.",
)
