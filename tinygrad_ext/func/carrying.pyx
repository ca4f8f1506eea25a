# cython: language_level=3
"""The part of the batch level that every op under vmap goes through: values in and out, and pointwise ops.

Compiled, because a small op under vmap should cost little more than the op: with the rules for pointwise ops in Python one
took 6 us instead of one.
"""
from tinygrad_ext.core.call.dispatch cimport FUNCTIONAL, Op
from tinygrad_ext.core.call.levels cimport Level, OpForm, Operation, carry_row
from tinygrad_ext.core.data.dtype cimport dtype_of
from tinygrad_ext.core.data.tensor cimport Carried, Tensor

from tinygrad_ext.core.call.levels import OF_GEOMETRY, unseen
from tinygrad_ext.core.call.levels import operation as overload_of
from tinygrad_ext.registry import functions


OPENED = object()       # in the place of a rule: the op is a composite, and what it is written in has rules


cdef class Rows(Level):
    """A level that carries tensors whose first dimension the program does not see.

    Attributes:
        size: of that dimension.
        randomness: what random ops do: "error", "different" for each row, or the "same" for all.
    """

    cdef readonly object size
    cdef readonly str randomness

    def __init__(self, size, str randomness="error"):
        self.size, self.randomness, self.known = size, randomness, OF_GEOMETRY

    def rule_of(self, op):
        """How an op is carried out for all rows: function(level, op, args), OPENED for a composite that is."""
        raise NotImplementedError

    def process_other(self, operation, args):
        """Operations that are no functional ops."""
        raise NotImplementedError

    def process(self, operation, args):
        cdef Op op
        if type(operation) is not OpForm:
            return self.process_other(operation, args)
        op = (<OpForm>operation).op
        _check_attributes(self, op, <tuple>args)
        if (<OpForm>operation).form != FUNCTIONAL:
            return self.process_other(operation, args)
        rule = self.rule_of(op) if op.batch_rule is None else op.batch_rule
        if type(rule) is Pointwise:
            return carry_row(self, <Tensor>(<Pointwise>rule).run(self, <tuple>args))
        if rule is OPENED:
            return NotImplemented
        return self.shown(rule(self, op, args))

    def owns(self, value):
        """Whether this level carries a value."""
        return type(value) is Carried and (<Carried>value).level is self

    def wrap(self, Tensor tensor not None):
        """What the program sees of a tensor whose dimension 0 is the batch."""
        return carry_row(self, tensor)

    def whole(self, Tensor value not None):
        """The tensor behind a value, with the batch in front; of an unbatched one too."""
        if type(value) is Carried and (<Carried>value).level is self:
            return (<Carried>value).value
        return value.expand(self.size, *value.shape)

    def shown(self, result):
        """Results of a rule as the program sees them."""
        if type(result) is Carried and (<Carried>result).level is self:
            return result
        if isinstance(result, Tensor):
            return carry_row(self, <Tensor>result)
        if type(result) is Shared:
            return (<Shared>result).tensor
        if type(result) is list:
            return [self.shown(r) for r in result]
        if isinstance(result, tuple):
            return tuple.__new__(type(result), [self.shown(r) for r in result])
        return result


cdef int _check_attributes(Level level, Op op, tuple args) except -1:
    """RuntimeError for a batched tensor in the place of a number, as which each sample has its own."""
    cdef int i
    for i in op.attributes[:op.nattributes]:
        if _holds(level, args[i]) and op.schema.args[i].type != "Any":
            raise RuntimeError(
                f"vmap: It looks like you're calling .item() on a Tensor: {op.title}() takes a number for "
                f"'{op.schema.args[i].name}', and there is one for each sample. Keep to operations on tensors, or compute "
                "the number outside of vmap."
            )
    return 0


cdef bint _holds(Level level, a) except -1:
    if type(a) is Carried:
        return (<Carried>a).level is level
    if type(a) is list or type(a) is tuple:
        for x in a:
            if type(x) is Carried and (<Carried>x).level is level:
                return True
    return False


cdef class Shared:
    """A result of a rule that all rows have in common."""

    cdef readonly object tensor

    def __init__(self, tensor):
        self.tensor = tensor


cdef class Pointwise:
    """The rule of an op whose operands are broadcast: shapes are aligned behind the batch.

    tensors: numbers of its tensor arguments; promoted: of those that take part in promotion; promote: function(level,
    args, row) for operands of several dtypes, where what the program sees has no dimensions and what is computed has one.
    """

    cdef readonly OpForm form
    cdef tuple tensors, promoted
    cdef object promote

    def __init__(self, OpForm form, tuple tensors, tuple promoted, promote):
        self.form, self.tensors, self.promoted, self.promote = form, tensors, promoted, promote

    def __call__(self, level, op, args):
        return self.run(level, args)

    cdef object run(self, Level level, tuple args):
        return (<Operation>self.form).run(self.lowered(level, args))

    def write(self, OpForm form not None, Level level not None, tuple args not None):
        """The op in place, of a value of the level: what autograd keeps of it is as without a batch."""
        cdef tuple row = self.lowered(level, args)
        if row[0] is not (<Carried>args[0]).value:
            shapes = " and ".join([str(list(args[i].shape)) for i in self.tensors if isinstance(args[i], Tensor)])
            raise RuntimeError(f"{form.name}: output with shape {list(args[0].shape)} doesn't match the broadcast shape of "
                               f"{shapes}. Use the form without the underscore, which makes a new tensor")
        (<Operation>form).run(row)

    cdef tuple lowered(self, Level level, tuple args):
        cdef list row = list(args)
        cdef int i, kind = -1, rank = 0, lowest = 64
        cdef bint mixed = False
        cdef Tensor t
        for i in self.tensors:
            a = args[i]
            if isinstance(a, Tensor):
                rank = max(rank, (<Tensor>a).rank)
        for i in self.promoted:
            a = args[i]
            if isinstance(a, Tensor):
                t = <Tensor>a
                lowest = min(lowest, t.rank)
                if kind >= 0 and kind != t.tid:
                    mixed = True
                kind = t.tid
        for i in self.tensors:
            a = args[i]
            if type(a) is Carried and (<Carried>a).level is level:
                t = <Tensor>(<Carried>a).value
                row[i] = t if t.rank > rank else aligned(t, rank + 1)
        if mixed and lowest == 0:
            self.promote(level, args, row)
        return tuple(row)


def aligned(Tensor tensor not None, int rank):
    """A tensor with a batch in front, with as many dimensions of size 1 behind that as make up `rank`."""
    cdef int missing = rank - tensor.rank
    if missing <= 0:
        return tensor
    return tensor.reshape((tensor.shape[0], *(1,) * missing, *tensor.shape[1:]))


cdef class Tried:
    """A rule that takes the batch for one dimension more, of an op that may refuse a sample for having too few.

    So the op is asked about the shapes of a sample, without data and once for each combination of ranks and dtypes.
    """

    cdef object rule
    cdef set known

    def __init__(self, rule):
        self.rule, self.known = rule, set()

    def __call__(self, level, Op op not None, tuple args not None):
        cdef tuple ranks = tuple([_ranks(a) for a in args])
        if ranks not in self.known and not _holds_sizes(args):
            try:
                unseen(_of_shapes, op, args)
            except NotImplementedError:     # nobody knows without data
                pass
            self.known.add(ranks)
        return self.rule(level, op, args)


cdef object _ranks(a):
    if isinstance(a, Tensor):
        return (<Tensor>a).rank, (<Tensor>a).tid
    return tuple([_ranks(x) for x in a]) if type(a) is list or type(a) is tuple else None


cdef bint _holds_sizes(args) except -1:
    """Whether a size that a capture knows by name is among the arguments: it would note that somebody asks for it."""
    for a in args:
        if _holds_sizes(a) if isinstance(a, (list, tuple)) else hasattr(type(a), "stands_for_a_size"):
            return True
    return False


def _of_shapes(op, args):
    return overload_of(op)(*[_without_data(a) for a in args])


def _without_data(a):
    cdef int i
    if isinstance(a, Tensor):       # (a capture would note who asks for its shape)
        shape = [(<Tensor>a).sizes[i] for i in range((<Tensor>a).rank)]
        return functions["empty"](shape, dtype=dtype_of((<Tensor>a).tid), device="meta")
    return type(a)([_without_data(x) for x in a]) if type(a) is list or type(a) is tuple else a


cdef class ByDims:
    """The rule of an op whose arguments name dimensions: behind the batch each stands one further.

    tensors, dims: numbers of the arguments; lists: of dims that are lists; reduced: of those where no dimensions stand for
    all; scalars: function(operation, row, tensors) for samples without dimensions.
    """

    cdef OpForm form
    cdef list tensors, dims
    cdef frozenset lists, reduced
    cdef object scalars

    def __init__(self, OpForm form, list tensors, list dims, frozenset lists, frozenset reduced, scalars):
        self.form, self.tensors, self.dims, self.lists, self.reduced = form, tensors, dims, lists, reduced
        self.scalars = scalars

    def __call__(self, Rows level not None, op, args):
        cdef list row = list(args)
        cdef int i, rank = 0
        for i in self.tensors:
            a = row[i]
            if isinstance(a, Tensor):
                row[i] = a = level.whole(<Tensor>a)
                rank = max(rank, (<Tensor>a).rank - 1)
            elif a is not None:
                row[i] = a = [None if t is None else level.whole(<Tensor?>t) for t in a]
                for t in a:
                    if t is not None:
                        rank = max(rank, (<Tensor>t).rank - 1)
        for i in self.dims:
            a = args[i]
            if a is None and i not in self.lists:
                continue
            row[i] = shifted(None if a is None or (i in self.reduced and isinstance(a, (list, tuple)) and not a) else a, rank)
        if rank:
            return (<Operation>self.form).run(tuple(row))
        return self.scalars(self.form, row, self.tensors)


def shifted(dim, int rank):
    """Where dimension `dim` of what the program sees lies in the tensor behind it; a list of them; None for all."""
    cdef int at, limit = max(rank, 1)
    if dim is None:
        return list(range(1, rank + 1))
    if isinstance(dim, (list, tuple)):
        return [shifted(d, rank) for d in dim]
    at = dim
    if not -limit <= at < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return (at + limit if at < 0 else at) + 1
