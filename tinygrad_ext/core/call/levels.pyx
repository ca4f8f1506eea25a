# cython: language_level=3
"""Levels: what handles operations between the override protocol and autograd.

A level is an object on a stack of its thread. It gets an operation resolved to one overload, with all arguments of the
schema, as `process(operation, args)`, and goes on by calling the operation, which the levels below it see next. So any
number nest, and none knows of another. Two kinds differ in what they are asked about: a plain Level (vmap, forward
mode, an inner grad) serves the values that it carries, which it finds among the arguments; an Observer (trace, profile)
is asked about everything.

Rejected: one slot for each kind of level, which cannot nest; and handlers of public functions with raw arguments,
which have to bind and resolve again what the dispatcher has resolved, and never see what is no public function
(accumulation into `.grad`, an optimizer's step).

The stack is a list on the thread's state. `active` says how many of its levels, from below, see the next operation: a
level and all above it are off while it processes. One flag tells `call_op` whether there is any; without levels an
operation pays the test of that flag.
"""
from operator import index

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.list cimport PyList_GET_ITEM
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from tinygrad_ext.core.call.arguments cimport check_row
from tinygrad_ext.core.call.dispatch cimport (
    COMPOSITE, FUNCTIONAL, INPLACE, MAX_ARGS, OUT, Op, TGX_LEVELS, call_op, set_levels, state, tgx_state, uint32_t,
)
from tinygrad_ext.core.data.dtype cimport META, device, dtype
from tinygrad_ext.core.call.inplace cimport call_inplace, call_out
from tinygrad_ext.core.call.places cimport here, place_text, tgx_place
from tinygrad_ext.core.data.tensor cimport (
    REQUIRES_GRAD, Carried, Tensor, blank_carried, checked_numel, finish, needs_grad, set_geometry, shown_device,
)
from tinygrad_ext.core.data.table_gen cimport is_complex, is_inexact
from tinygrad_ext.core.data.types cimport F_WRITE, TGX_MAX_DIMS, int64_t

cdef extern from *:
    """
    static __thread PyObject *tgx_line_code;        /* where the operation that is being processed was called */
    static __thread int tgx_line_at;
    """
    PyObject *tgx_line_code
    int tgx_line_at

cdef enum:
    DEPTH = 3               # of lists that are searched for carried values

# What reads the elements of a tensor, and so is nothing that the shape of a carried value could answer.
cdef frozenset _READS_ELEMENTS = frozenset([
    "__bool__", "__int__", "__float__", "__complex__", "__index__", "__array__", "__contains__", "numpy", "data_ptr",
    "storage_offset", "stride", "untyped_storage", "__dlpack__", "__reduce_ex__", "__deepcopy__",
])


cdef frozenset _NOTHING = frozenset()

# What shape, dtype and device say of a value: for levels whose programs may know it.
OF_GEOMETRY = frozenset(["shape", "size", "dim", "ndim", "numel", "nelement", "dtype", "__len__", "device", "is_complex",
                         "is_floating_point"])


# ---- operations ----------------------------------------------------------------------------------------------------

cdef class Operation:
    """What a level is asked to process; calling it goes on with the levels below.

    Attributes:
        name: "aten::add.Tensor", "aten::add_.Tensor", "function::Cube", "autograd::accumulate_grad", ...
        composite: it is written in other operations; a level that returns NotImplemented sees those instead.
    """

    cdef object run(self, tuple args):
        raise NotImplementedError

    def __call__(self, *args):
        return perform(self, args)

    def __repr__(self):
        return f"<operation {self.name}>"


cdef class OpForm(Operation):
    """One overload of an op, as a function, in place, or with `out=`. Takes all arguments of the schema, in its order.

    Attributes:
        op: the overload. record, schema: its declaration. kind: "functional", "inplace" or "out".
        mutates: positions of the arguments that are written to; with "out" the last argument is `out`.
        draws: it draws numbers.
        reads: what it returns are Python values, not tensors: of a carried value its level's `read` gives them.
    """

    def __init__(self, Op op not None, int form):
        cdef int i
        base, dot, overload = op.name.partition(".")
        self.op, self.form = op, form
        self.composite = op.kind == COMPOSITE and form == FUNCTIONAL
        self.name = (op.name if form == FUNCTIONAL else f"{base}_{dot}{overload}" if form == INPLACE
                     else f"{base}.{overload}_out" if overload else f"{base}.out")
        self.mutates = ((0,) if form == INPLACE else (op.nargs,) if form == OUT
                        else tuple([i for i in range(op.nargs) if op.args[i].flags & F_WRITE]))
        self.draws = any([a.type == "Generator" for a in op.schema.args])
        self.reads = bool(op.schema.returns) and all([r.type != "Tensor" for r in op.schema.returns])

    @property
    def record(self):
        return self.op.record

    @property
    def schema(self):
        return self.op.schema

    @property
    def kind(self):
        return ("functional", "inplace", "out")[self.form]

    cdef object run(self, tuple args):
        cdef PyObject *row[MAX_ARGS + 1]
        cdef int i
        if len(args) != self.op.nargs + (self.form == OUT):
            raise TypeError(f"{self.name}: expected all {self.op.nargs + (self.form == OUT)} arguments of the schema in its "
                            f"order, as a level gets them, but got {len(args)}")
        for i in range(len(args)):
            row[i] = <PyObject *>args[i]
        check_row(self.op, row)
        if not state().flags & TGX_LEVELS:
            _carrier(args, 0)
        if self.form == INPLACE:
            return call_inplace(self.op, row)
        return call_out(self.op, row, <object>row[self.op.nargs]) if self.form == OUT else call_op(self.op, row)

    def __call__(self, *args):
        return self.run(args)


cdef OpForm form_of(Op op, int form):
    if op.forms is None:
        op.forms = [OpForm(op, FUNCTIONAL), OpForm(op, INPLACE), OpForm(op, OUT)]
    return op.forms[form]


def operation(Op op not None, str kind="functional"):
    """An overload as levels get it: a function of all arguments of its schema; kind: "functional", "inplace" or "out"."""
    return form_of(op, ("functional", "inplace", "out").index(kind))


def unseen(function, *args):
    """function(*args) with no level on."""
    return _run_with(0, function, args)


cdef class HostOperation(Operation):
    """A step of the host that is no op: levels see it once, and nothing of what it does inside."""

    def __init__(self, str name, function, opened=None):
        self.name, self.function, self.opened = name, function, opened

    cdef object run(self, tuple args):
        return self.function(*args)


def atomic(str name, opened=None):
    """Decorator: levels see calls of this function as one operation. It takes arguments by position.

    opened: a function of the same arguments that does the same in ops, for levels that write programs down.

    @atomic("optim::zero_grad")
    def clear_grads(parameters, set_to_none): ...
    """
    return lambda function: HostOperation(name, function, opened)


include "levels_way.pxi"
include "levels_carried.pxi"


# ---- what users derive from ----------------------------------------------------------------------------------------

cdef class Level:
    """Handles operations on the values it carries, inside a `with`, in this thread.

    Define `process`; make values with `carry`. The one entered last is asked first. With `sees_draws = True` it is asked
    about all ops that draw numbers, too.
    """

    sees_draws = False

    def __cinit__(self, *args, **kwargs):
        self.at, self.known = -1, _NOTHING

    def process(self, operation, args):
        """Carry out an operation on values of which this level carries at least one.

        operation: see `Operation`; calling it goes on with the levels below this one.
        args: all arguments of its schema, in its order.
        Return the result, or NotImplemented to be asked about what a composite is written in.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define process(self, operation, args)")

    def read(self, Carried value not None, name, args):
        """What an attribute or method that is no op says of a value that this level carries: "shape", "size", "__len__".

        Return NotImplemented to let the shape and dtype answer that the value was made with.
        """
        if name == "device":
            return shown_device(value)
        if name == "__repr__":
            return f"<{type(self).__name__} value, shape {list(value.shape)}, {value.dtype}>"
        if name in _READS_ELEMENTS:
            _refuse_reading(self, name)
        if name == "resize_":
            raise RuntimeError(f"resize_: a value that {self!r} carries keeps its shape; new_empty() makes one of another shape")
        return NotImplemented

    def write(self, tensor, name, new):
        """An attribute is set, of a value that this level carries or to one."""
        if type(tensor) is Carried:
            raise RuntimeError(f"cannot set '{name}' of a value that {self!r} carries")
        raise RuntimeError(f"cannot set '{name}' of a tensor to a value that {self!r} carries: it would outlive the level")

    def backward(self, outputs, seeds, create_graph, inputs):
        """`autograd.backward` of values that this level carries; seeds: their gradients, or None."""
        raise NotImplementedError(f"{self!r} does not differentiate what it carries: backward() has to be called outside of it")

    def gradients(self, outputs, inputs, seeds, create_graph, allow_unused):
        """`autograd.grad` of values that this level carries: a list with a gradient or None for each input."""
        raise NotImplementedError(f"{self!r} does not differentiate what it carries: grad() has to be called outside of it")

    def carry(self, value, shape, dtype, device="cpu", *, bint requires_grad=False):                 # no-cython-lint
        """A tensor of that shape, dtype and device that stands for `value`, whatever that is, under this level.

        requires_grad: it is no mere number where an op takes either.
        """
        cdef Carried made = _carry(self, value, tuple(shape), dtype, device)
        if requires_grad:
            made.bits |= REQUIRES_GRAD
        return made

    def move(self, Carried shown not None, value, shape):
        """Let a carried value stand for something else, of another shape: an op changed it in place."""
        cdef Carried like = _carry(self, value, tuple(shape), shown.dtype, shown.shown_device)
        shown.value = value
        set_geometry(shown, like)

    @property
    def place(self):
        """Where it stands in the stack of its thread, the outermost at 0; -1 while it is on none."""
        return self.at

    def resume(self, function, *args):
        """function(*args) from within `process`, with this level on again: for what it opens itself."""
        return _run_with(max(state().active, self.at + 1), function, args)

    def suspend(self, function, *args):
        """function(*args) with this level and those above it off, as in `process`."""
        return _run_with(min(state().active, self.at) if self.at >= 0 else state().active, function, args)

    def look_into(self, Operation operation not None, args):
        """Carry out an atomic operation from within `process`, with what is inside shown to this level.

        Where there are levels below, they get it whole, and the inside is theirs.
        """
        return _run_with(1, _inside, (operation, tuple(args))) if self.at == 0 else perform(operation, tuple(args))

    def __enter__(self):
        push_level(self, 0 if getattr(self, "after_transforms", False) else -1)
        return self

    def __exit__(self, *exc):
        _pop(self)

    def __repr__(self):
        return f"<level {type(self).__name__}>"


cdef class Observer(Level):
    """A level that is asked about every operation of its thread.

    `process` should return what `operation(*args)` returns, or NotImplemented to pass without seeing the result; of a
    composite that is passed, the operations inside are seen too. With `after_transforms = True` the level sees what the
    transforms around it have made of the program; else what the program says. With `sees_attributes = True` it is asked
    about attributes, and methods that are no ops, of all tensors: `read` and `write` get those too that no level carries,
    and return NotImplemented for what is to go on as usual. While `resting` is above zero it is asked about the values
    that it carries only, like any level.
    """

    after_transforms = False
    sees_attributes = False

    cdef object watch(self, Op op, PyObject **args, int form):
        return offer_row(op, args, form)

    def begin(self, name):
        """A range of the user's begins: `with record_function(name)`."""

    def end(self, name):
        """It ends."""


include "levels_stack.pxi"


set_levels(_offer_op)
