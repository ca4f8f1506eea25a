# cython: language_level=3
"""Lowering: ops on tensors of known geometry become steps of a plan, and nothing is computed.

A tensor is stood for by one of its sizes, strides and dtype in memory that does not exist; its storage's owner is the
`Buffer` that plan.py finds a place for. `shape` of a kernel, promotion and broadcasting of a pointwise op look at such
tensors as they look at real ones, so sizes, conversions and errors are those of eager mode and are written nowhere twice.
Composites are opened in opening.py, which ends here too.

What cannot be planned (sizes that depend on elements, Python code that reads them) raises NotPlanned, and whoever plans
lets the interpreter do that node.

Rejected: meta tensors, for which kernels skip the very part of `shape` that prepares `run`; and geometry of our own with a
second shape rule for each op, as most compilers of graphs have.
"""
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy
from tinygrad_ext.core.call.arguments cimport check_row
from tinygrad_ext.core.call.dispatch cimport COMPOSITE, KERNEL, MAX_ARGS, POINTWISE, PYTHON_KERNEL, Op
from tinygrad_ext.core.call.kernel cimport *
from tinygrad_ext.core.call.kernel_call cimport begin_call, end_call
from tinygrad_ext.core.call.pointwise cimport Decision, decide, fits, loop_by_number
from tinygrad_ext.core.data.boxed cimport as_ints, as_scalar, as_wide_scalar
from tinygrad_ext.core.data.dtype cimport CPU, META, flips_of
from tinygrad_ext.core.data.random cimport Generator
from tinygrad_ext.core.data.geometry cimport ANY_ROOM, reach
from tinygrad_ext.core.data.storage cimport borrow_storage
from tinygrad_ext.core.data.tensor cimport CONTIGUOUS, Tensor, alias, empty, empty_like, empty_strided, view, write_scalar
from tinygrad_ext.core.data.types cimport (
    A_GENERATOR, ITEMSIZE, TGX_BOOL, TGX_F32, TGX_U64, TGX_U8, int64_t, is_coded, is_complex, is_half, is_inexact,
    tgx_scalar,
)
from tinygrad_ext.core.loops.copy cimport cast_loop
from tinygrad_ext.graph.plan_h cimport *
from tinygrad_ext.graph.stacks cimport Form, Pile, Stack

from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.call.op_tables import ops
from tinygrad_ext.graph.aliases import COMPUTED

cdef extern from "tgx.h" nogil:
    enum:
        TGX_MAY_READ

cdef enum:
    CHUNK = 1 << 15


class NotPlanned(Exception):
    """A node cannot become steps, and never will: the interpreter does it."""


class ByValue(Exception):
    """Steps depend on the value of a number that was to be one of the run's: `numbers` are known by value."""

    def __init__(self, *numbers):
        self.numbers = numbers


include "lowering_parts.pxi"
include "lowering_numbers.pxi"


cdef int64_t *_copied(Room room, const int64_t *numbers, Py_ssize_t n) except NULL:
    cdef int64_t *to = <int64_t *>room.take(8 * n + 8)
    memcpy(to, numbers, 8 * n)
    return to


cdef bint holds_tensor(object o):
    """Whether there is a tensor in a value, or in lists in it."""
    if isinstance(o, (list, tuple)):
        for x in o:
            if holds_tensor(x):
                return True
        return False
    if isinstance(o, slice):
        return holds_tensor((o.start, o.stop, o.step))
    return isinstance(o, Tensor) or isinstance(o, dict)


def numbers_in(o):
    """The Numbers in a value, or in lists in it."""
    if isinstance(o, Number):
        return [o]
    if isinstance(o, (Stacked, Way)):
        o = (o.number,)
    if isinstance(o, slice):
        o = (o.start, o.stop, o.step)
    if isinstance(o, dict):
        o = list(o.values())
    return [n for x in o for n in numbers_in(x)] if isinstance(o, (list, tuple)) else []


# ---- lowering ------------------------------------------------------------------------------------------------------

cdef class Lowering(Recording):
    """Collects steps. Tensors among arguments and results are stand-ins, numbers of the run are `Number`s."""

    def __init__(self):
        self.room, self.steps, self.fixups, self.kept = Room(), [], [], []
        self.calls, self.places, self.windows, self.updated = [], [], [], []
        self.rows, self.heaps = [], []
        self.described, self.constants = {}, {}
        self.address = <char *>(<size_t>1 << 46)        # nothing is there, and nothing will read it

    # ---- what stands for tensors and numbers

    cdef Tensor made(self, Tensor meta):
        """A meta tensor becomes one in a buffer of its own."""
        cdef int64_t nbytes = meta.count * ITEMSIZE[meta.tid]
        if is_coded(meta.tid):
            raise NotPlanned(f"{meta.dtype} was brought by a plugin, and each call with it is computed in float32")
        if not meta.bits & CONTIGUOUS:
            nbytes = reach(meta.sizes, meta.strides, meta.rank, 0, ITEMSIZE[meta.tid], ANY_ROOM, "plan")
        meta.storage = borrow_storage(self.address, nbytes, Buffer(nbytes), False)
        meta.data, meta.device_id = self.address, CPU
        self.address += (nbytes + 127) & ~<int64_t>63
        return meta

    def input(self, Tensor t not None, int base):
        """The stand-in for a tensor that is passed in as base number `base`."""
        if flips_of(t.device_id):
            raise NotPlanned("a tensor that is passed in has the conjugate or the negative bit")
        cdef Tensor made = self.made(_on_meta(t))
        buffer_of(made).base = base
        return made

    def constant(self, Tensor t not None):
        """The stand-in for a tensor that is the same in each run."""
        cdef Tensor made
        if t.device_id != CPU or t.storage is None:
            raise NotPlanned("it uses a tensor of another device")
        made = self.made(_on_meta(t))
        buffer_of(made).constant = t
        return made

    def result_of(self, o):
        """A value that is returned: a constant tensor is made anew in each run."""
        if isinstance(o, dict):
            return {key: self.result_of(x) for key, x in o.items()}
        if isinstance(o, (list, tuple)) and holds_tensor(o):
            made = [self.result_of(x) for x in o]
            return made if type(o) is list else tuple(made) if type(o) is tuple else tuple.__new__(type(o), made)
        if isinstance(o, Tensor) and (buffer_of(<Tensor>o).constant is not None or buffer_of(<Tensor>o).row):
            return self.clone(o)
        return o

    def item(self, Tensor t not None):
        """The number that an element is, which is read when what makes it has run."""
        cdef tgx_cell *place = <tgx_cell *>self.room.take(sizeof(tgx_cell))
        cdef Step step
        if t.count != 1:
            raise NotPlanned(f"item() of {t.count} elements")
        kind = bool if t.tid == TGX_BOOL else complex if is_complex(t.tid) else float if is_inexact(t.tid) else int
        made = self.number(_SEEN[kind])
        step = self._computed(TGX_CODE_LOAD, made, [], "item")
        step.a, place.dtype, step.work = <int>len(self.places), t.tid, 1
        self.fix(&place.data, t)
        self.places.append(<size_t>place)
        step.reads.append((buffer_of(t), False))
        return made

    def stream(self):
        """The state of a generator that is passed in."""
        return self.keep(Generator.__new__(Generator))

    def drawn_from(self, Generator source not None):
        """The state that draws go on from: source itself stays."""
        cdef Generator made = self.stream()
        cdef Step step = Step("move", self.node, "")
        step.target, step.origin, step.nbytes = &made.mt, &source.mt, sizeof(made.mt)
        step.effect = True
        self.steps.append(step)
        return made

    def keep(self, o):
        """Let an object live as long as the plan."""
        self.kept.append(o)
        return o

    cdef int fix(self, char **where, Tensor t) except -1:
        self.fixups.append((<size_t>where, t.storage.owner, <int64_t>(t.data - t.storage.data)))
        return 0

    cdef tgx_tensor *describe(self, Tensor t) except NULL:
        """The tensor as kernels see it, whose address is found when the plan is laid out."""
        cdef tgx_tensor *made
        found = self.described.get(<size_t><PyObject *>t)
        if found is not None:
            return <tgx_tensor *><size_t>found
        made = <tgx_tensor *>self.room.take(sizeof(tgx_tensor))
        made.sizes, made.strides = _copied(self.room, t.sizes, t.rank), _copied(self.room, t.strides, t.rank)
        made.count, made.rank, made.dtype, made.flags = t.count, t.rank, t.tid, t.bits & CONTIGUOUS
        self.described[<size_t><PyObject *>t] = <size_t>made
        self.kept.append(t)
        self.fix(&made.data, t)
        return made

    # ---- ops

    def op(self, Op op not None, args):
        """Results of an op: stand-ins, or what else it returns; NotImplemented for one that is written in others.

        Raises NotPlanned, ByValue and what the op raises.
        """
        cdef PyObject *row[MAX_ARGS + 1]
        cdef list given = list(args)
        cdef int i
        if op.is_view and op.name in COMPUTED:
            op = <Op>ops[COMPUTED[op.name]]
        if len(given) != op.nargs:
            raise NotPlanned(f"{op.name} is called with {len(given)} arguments")
        if op.kind == POINTWISE:
            return self.pointwise(op, given)
        if op.kind != KERNEL and self.written_in(op) is not None:
            return NotImplemented
        if self.nslots:
            numbers = numbers_in(given)
            if numbers and op.name == "aten::select.int" and isinstance(given[2], Number) and len(numbers) == 1:
                return _select(self, op, given)
            if numbers:
                raise ByValue(*numbers)
        for i in range(op.nattributes):
            if holds_tensor(given[op.attributes[i]]):
                raise NotPlanned(f"{op.name} reads a number from a tensor")
        if op.kind != KERNEL or op.custom is not None:
            raise NotPlanned(f"{op.name} is computed in Python")
        for i in range(op.nargs):
            row[i] = <PyObject *>given[i]
        check_row(op, row)
        if op.pair != NULL:
            return _kernel(self, op, given)
        if op.is_view:
            return op.kernel(row)
        native = _NATIVE.get(op.name)
        if native is None and op.name == "aten::tensor" and not holds_tensor(given):
            return self.constant(operation(op)(*given))
        if native is None:
            raise NotPlanned(f"{op.name} is compiled, but speaks Python")
        return native(self, op, given)

    cdef object value_of(self, object given, Step step, int dtype):
        """A number among the operands of a step, as an element of a dtype."""
        cdef Constant made = Constant()
        cdef object value = given.value if isinstance(given, Number) else given
        cdef tgx_scalar s = as_wide_scalar(value) if dtype == TGX_U64 else as_scalar(value)
        made.data, made.size = <char *>self.room.take(16), ITEMSIZE[dtype]
        write_scalar(made.data, dtype, s.f, s.im, s.i)
        if isinstance(given, Number):
            self.put(step, given, made.data, dtype)
        return made

    cdef object pointwise(self, Op op, list args):
        cdef PyObject *row[MAX_ARGS + 1]
        cdef Decision d
        cdef Tensor model, result, t
        cdef int i, want
        cdef list seen = [(<Number>a).value if isinstance(a, Number) else a for a in args]
        cdef Step step
        for i in range(op.nargs):
            row[i] = <PyObject *>seen[i]
        check_row(op, row)
        for i in range(op.nscalars):
            if isinstance(seen[op.scalars[i]], Tensor):
                raise NotPlanned(f"{op.name} reads a number from a tensor")
            if isinstance(args[op.scalars[i]], Number) and op.refuses is not None and "crossed" in op.refuses:
                raise ByValue(*numbers_in(args))
        model = decide(op, row, NULL, &d)
        if d.device:
            raise NotPlanned(f"{op.name} runs on another device than the cpu")
        _look_at_numbers(op, args, d.dtype)
        if _has_wide_number(op, args, d.dtype):
            return self.converted(self.pointwise(op, [self.converted(t, TGX_F32, False) for t in args]), d.dtype, False)
        result = empty_like(_on_meta(model), d.out_dtype) if model is not None else empty(d.shape, d.ndim, d.out_dtype, META)
        result = self.made(result)
        step = self._tile(op.name, result)
        step.loop, step.dtype = d.loop, d.dtype
        if op.nscalars:
            step.aux = <tgx_scalar *>self.room.take(op.nscalars * sizeof(tgx_scalar))
            memcpy(step.aux, d.aux, op.nscalars * sizeof(tgx_scalar))
            for i in range(op.nscalars):
                if isinstance(args[op.scalars[i]], Number):
                    self.put(step, args[op.scalars[i]], &step.aux[i], -1)
                    step.varying |= <uint32_t>1 << i
        for i in range(_put_number(self, step, op, args, &d)):
            o = args[op.tensors[i]]
            want = TGX_BOOL if op.fixed_inputs & (1 << i) else d.dtype
            if isinstance(o, Tensor):
                t = <Tensor>o
                if t.tid != want:
                    t = self.converted(t, want, False)
                self._reads(step, t)
            else:
                step.operands.append(self.value_of(o, step, want))
        self.steps.append(step)
        return result

    def _tile(self, str name, Tensor result):
        cdef Step step = Step("tile", self.node, name)
        cdef int i
        step.key = (tuple([result.sizes[i] for i in range(result.rank)]), tuple([result.strides[i] for i in range(result.rank)]))
        step.operands, step.work = [result], result.count
        step.writes.append(buffer_of(result))
        return step

    def _reads(self, Step step, Tensor t):
        """Let a step over tiles read a tensor."""
        cdef Tensor result = <Tensor>step.operands[0]
        cdef int i
        cdef bint aligned = t.rank == result.rank and t.data == t.storage.data
        if aligned:
            for i in range(t.rank):
                if t.sizes[i] != result.sizes[i] or t.strides[i] != result.strides[i]:
                    aligned = False
        step.operands.append(t)
        step.reads.append((buffer_of(t), aligned))

    cdef Tensor converted(self, Tensor t, int dtype, bint dense):
        """A copy in another dtype, in t's order of dimensions or row-major."""
        cdef Tensor to = empty(t.sizes, t.rank, dtype, META) if dense else empty_like(_on_meta(t), dtype)
        to = self.made(to)
        self.copy(to, t)
        return to

    cdef int copy(self, Tensor to, Tensor source) except -1:
        """A copy with conversion and broadcasting: by tiles where both lie in memory alike, as then it may join a group."""
        cdef Step step
        cdef int i
        cdef bint alike = to.rank == source.rank and to.data == to.storage.data
        for i in range(to.rank if alike else 0):
            alike &= to.sizes[i] == source.sizes[i] and (to.strides[i] == source.strides[i] or to.sizes[i] == 1)
        if alike and _dense(to):
            step = self._tile("copy", to)
            step.loop, step.apart = cast_loop(source.tid, to.tid), ITEMSIZE[source.tid] != ITEMSIZE[to.tid]
            step.casts, step.dtype = True, to.tid if source.tid == TGX_BOOL else source.tid
            self._reads(step, source)
        else:
            step = Step("copy", self.node, "copy")
            step.to, step.source, step.work = self.describe(to), self.describe(source), to.count
            step.reads.append((buffer_of(source), False))
            step.writes.append(buffer_of(to))
        self.steps.append(step)
        return 0

    def write(self, Tensor to not None, Tensor source not None):
        """Let a tensor that another step has made hold other elements."""
        cdef Step step = Step("copy", self.node, "copy")
        if buffer_of(to).base >= 0 or buffer_of(to).constant is not None:
            raise NotPlanned("an input would be written to")
        if buffer_of(to) is buffer_of(source):
            source = self.converted(source, source.tid, True)
        step.to, step.source, step.work, step.changes = self.describe(to), self.describe(source), to.count, True
        step.reads.append((buffer_of(source), False))
        step.writes.append(buffer_of(to))
        self.steps.append(step)

    def part(self, Tensor t not None):
        """t, or a copy where it lies in memory that is passed in."""
        return self.clone(t) if buffer_of(t).base >= 0 else t

    def write_back(self, Tensor to not None, Tensor source not None):
        """Let what is passed in hold other elements when all else is done."""
        cdef Step step = Step("copy", self.node, "copy")
        step.to, step.source, step.work = self.describe(to), self.describe(source), to.count
        step.changes = step.effect = True
        if source.bits & to.bits & CONTIGUOUS and source.tid == to.tid and source.count * ITEMSIZE[to.tid] == buffer_of(source).nbytes:
            step.over = buffer_of(to), buffer_of(source)    # of a copy: it is nothing but bytes, from there to here
        step.reads.append((buffer_of(source), False))
        step.writes.append(buffer_of(to))
        self.steps.append(step)
        self.updated.append(buffer_of(to).base)

    def clone(self, Tensor t not None):
        """A copy that keeps the order of dimensions."""
        return self.converted(t, t.tid, False)

    def is_tensor(self, o):
        return isinstance(o, Tensor)

    def written_in(self, Op op not None):
        """The function that an op is written in, over all arguments of its schema; None for one that is computed."""
        if op.kind == COMPOSITE and op.custom is None:
            return operation(op)
        if op.kind == PYTHON_KERNEL and op.custom is None and op.python is not None:
            if op.keywords is None:
                return op.python
            names, first = op.keywords, op.nargs - len(op.keywords)
            return lambda *args: op.python(*args[:first], **dict(zip(names, args[first:])))
        return None


cdef bint _dense(Tensor t):
    """Whether the elements lie without gaps, in whatever order."""
    return reach(t.sizes, t.strides, t.rank, 0, 1, ANY_ROOM, "plan") == t.count


include "lowering_kernels.pxi"
include "lowering_native.pxi"
include "lowering_stacks.pxi"
