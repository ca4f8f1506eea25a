# cython: language_level=3
"""The table itself: ops by name, nodes, and how a library is opened and asked for its ops.

An error of a function is the interpreter's pending exception, and stays so until the extension returns: what it calls
meanwhile is refused quietly. The functions on tensors stand in tensors.pyx, nodes in nodes.pyx.
"""
import os

from cpython.exc cimport PyErr_Occurred
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from tinygrad_ext.core.call.callables cimport OpFunction
from tinygrad_ext.core.call.dispatch cimport MAX_ARGS, Op, state
from tinygrad_ext.core.data.tensor cimport Tensor, needs_grad
from tinygrad_ext.core.data.types cimport F_KEYWORD, int32_t, is_inexact, uint32_t, uint64_t
from tinygrad_ext.core.grad.history cimport connect, enter, give_history
from tinygrad_ext.core.grad.node cimport next_seq, reserve_outputs, set_meta
from tinygrad_ext.extension.definitions cimport definition_of
from tinygrad_ext.extension.nodes cimport MAX_PLACES, TableNode, needs, node_of, save, settle_error, unpacked
from tinygrad_ext.extension.public cimport *
from tinygrad_ext.extension.tensors cimport *
from tinygrad_ext.extension.values cimport give, read, tensor_of

from tinygrad_ext.core.call.levels import mark_range

cdef extern from "Python.h":
    object PyObject_Vectorcall(object f, PyObject **args, size_t n, PyObject *kwnames)

cdef extern from "dlfcn.h":
    enum: RTLD_NOW, RTLD_LOCAL
    void *dlopen(const char *path, int flags)
    void *dlsym(void *handle, const char *name)
    char *dlerror()

_version = None             # of the package, for messages; and slots of the layer above
_find = None
_ranges = None


def set_slots(version, find):
    """Hand in the package's version, and find(name): the Op that a name means and the function that handlers see."""
    global _version, _find
    _version, _find = version.encode(), find
    table.core_version = <bytes>_version


def set_ranges(function):
    """function(name, begin) hears of the ranges that extensions name; None: the observers of the thread."""
    global _ranges
    _ranges = function


# ---- ops by name ---------------------------------------------------------------------------------------------------

cdef class Handle:
    """What resolve gives: an overload as a function, and the names of the arguments that it takes by keyword."""

    cdef object function
    cdef Op op
    cdef list keywords          # kwnames for calls with 0, 1, 2, ... of them

cdef dict _handles = {}         # name -> Handle; an extension keeps their addresses


cdef op_t *api_resolve(tgx_ctx *c, const char *name) except NULL:
    cdef Handle h
    cdef int i
    if unlocked(c) or PyErr_Occurred():
        return NULL
    if name == NULL:
        raise TypeError("resolve: the name is NULL")
    text = (<bytes>name).decode()
    h = _handles.get(text)
    if h is None or h.op.loose:
        h = Handle.__new__(Handle)
        h.op, seen = _find(text)
        f = OpFunction(h.op.schema.name, [h.op], owner=h.op.record.owner)
        f.seen_as = seen
        h.function = f
        names = [<object>h.op.args[i].name for i in range(h.op.nargs) if h.op.args[i].flags & F_KEYWORD]
        h.keywords = [tuple(names[:i]) for i in range(len(names) + 1)]
        _kept.append(h)         # its address is known outside, for ever
        _handles[text] = h
    return <op_t *><PyObject *>h


cdef list _kept = []


cdef int api_call(tgx_ctx *c, op_t *op, const value_t *inputs, int32_t n, value_t *out, int32_t m) except -1:
    cdef PyObject *row[MAX_ARGS]
    cdef Handle h
    cdef list owners
    cdef PyObject *names = NULL
    cdef int32_t i, positional
    if unlocked(c) or PyErr_Occurred():
        return -1
    if op == NULL or type(<object><PyObject *>op) is not Handle:
        raise TypeError("call: the op is none that resolve gave; look at what resolve returned before you call it")
    h = <Handle><PyObject *>op
    if not 0 <= n <= h.op.nargs:
        raise TypeError(f"call of {h.op.name}: {n} arguments, but the op has {h.op.nargs}: {h.op.schema}")
    owners = []
    for i in range(n):
        if inputs[i].tag == V_TENSOR and inputs[i].u.t != NULL:
            row[i] = <PyObject *>inputs[i].u.t
        else:
            o = read(&inputs[i])
            owners.append(o)
            row[i] = <PyObject *>o
    positional = min(n, h.op.npositional)
    if n > positional:
        names = <PyObject *>h.keywords[n - positional]
    result = PyObject_Vectorcall(h.function, row, positional, names)
    return _deliver(c, h.op, result, out, m)


cdef int _deliver(tgx_ctx *c, Op op, object result, value_t *out, int32_t m) except -1:
    cdef int32_t i
    cdef Py_ssize_t count = len(op.schema.returns)
    if m != count:
        raise TypeError(f"call of {op.name}: there is room for {m} results, but it has {count}: {op.schema}")
    for i in range(m):
        give(c, result[i] if m > 1 else result, &out[i])
    return 0


cdef int api_register_op(tgx_ctx *c, const tgx_op_def *given) except -1:
    if unlocked(c) or PyErr_Occurred():
        return -1
    if c == NULL or c.target == NULL:
        raise RuntimeError("register_op is for use while init runs")
    (<object>c.target)(definition_of(given))
    return 0


# ---- autograd ------------------------------------------------------------------------------------------------------

cdef int api_requires_grad(tgx_ctx *c, tensor_t *t) noexcept:
    return t != NULL and not state().no_grad and needs_grad(<Tensor><PyObject *>t)


cdef node_t *api_node_new(tgx_ctx *c, const tgx_node_def *given, tensor_t **edges, int32_t n) except NULL:
    cdef TableNode node
    cdef PyObject *operands[MAX_ARGS]
    cdef int32_t i
    cdef tgx_node_def d
    if unlocked(c) or PyErr_Occurred():
        return NULL
    if given == NULL or given.size < sizeof(tgx_node_def) or given.size > 1 << 12 or given.backward == NULL:
        raise TypeError("node_new: the definition needs its size (TGX_NODE writes it) and a backward")
    d = given[0]
    if not 0 <= n <= MAX_ARGS or d.saved > MAX_PLACES:
        raise ValueError(f"node_new: {n} edges and {d.saved} saved tensors; at most {MAX_ARGS} and {MAX_PLACES} are possible")
    for i in range(n):
        operands[i] = <PyObject *>None
        if edges[i] != NULL:
            tensor_of(edges[i], "node_new: an edge")
            operands[i] = <PyObject *>edges[i]
    node = TableNode.__new__(TableNode)
    node.who = <object>c.who
    node.title = "TableBackward" if d.name == NULL else (<bytes>d.name).decode()
    node.backward, node.forget, node.flags = d.backward, d.release, d.flags
    node.prepare(d.saved, d.state_size)
    connect(node, operands, n, d.saved)
    enter(node)
    if c.keep == NULL:              # the call holds it, until history does
        c.keep = <PyObject *>_new_list()
    (<list>c.keep).append(node)
    return <node_t *><PyObject *>node


cdef PyObject *_new_list() except NULL:
    made = []
    Py_INCREF(made)
    return <PyObject *>made


cdef void *api_node_state(tgx_ctx *c, node_t *n) except NULL:
    if unlocked(c):
        return NULL
    return node_of(n).state


cdef int api_save(tgx_ctx *c, node_t *n, uint32_t place, PyObject *t) except -1:
    if unlocked(c) or PyErr_Occurred():
        return -1
    return save(node_of(n), place, None if t == NULL else <object>t)


cdef tensor_t *api_unpack(tgx_ctx *c, node_t *n, uint32_t place) except? NULL:
    if unlocked(c) or PyErr_Occurred():
        return NULL
    t = unpacked(node_of(n), place)
    if t is None:
        return NULL
    Py_INCREF(t)
    return <tensor_t *><PyObject *>t


cdef int api_needs(tgx_ctx *c, node_t *n, int32_t edge) except -1:
    if unlocked(c):
        return -1
    return needs(node_of(n), c, edge)


cdef int api_set_history(tgx_ctx *c, node_t *n, tensor_t **outputs, int32_t count) except -1:
    cdef TableNode node
    cdef Tensor t
    cdef int32_t i
    if unlocked(c) or PyErr_Occurred():
        return -1
    node = node_of(n)
    if node.given:
        raise RuntimeError(f"{node.who}: set_history: the node has its outputs already; tell all of them at once")
    if count < 1 or count > 64:
        raise ValueError(f"set_history: {count} outputs; from 1 to 64 are possible")
    for i in range(count):
        t = tensor_of(outputs[i], f"set_history: output {i}")
        if t.node is not None or needs_grad(t):
            raise RuntimeError(f"set_history: output {i} has a history already; compute it under no_grad_enter, and give it history "
                               "once")
    node.given = True
    if count != 1:
        reserve_outputs(node, count)
    for i in range(count):
        t = <Tensor><PyObject *>outputs[i]
        if is_inexact(t.tid):
            give_history(node, i, t, 1)
        else:
            set_meta(node, i, t)
    return 0


cdef uint64_t api_next_sequence(tgx_ctx *c) noexcept:
    return next_seq()


cdef int api_no_grad_enter(tgx_ctx *c) noexcept:
    cdef int before = state().no_grad
    state().no_grad = 1
    return before


cdef void api_no_grad_leave(tgx_ctx *c, int before) noexcept:
    state().no_grad = before != 0


# ---- ranges --------------------------------------------------------------------------------------------------------

cdef int _mark(const char *name, bint begin) except -1:
    text = "" if name == NULL else (<bytes>name).decode("utf-8", "replace")
    if _ranges is None:
        mark_range(text, begin)
    else:
        _ranges(text, begin)
    return 0


cdef void api_range_begin(tgx_ctx *c, const char *name) noexcept:
    if not c.unlocked and not PyErr_Occurred():
        _mark(name, True)


cdef void api_range_end(tgx_ctx *c, const char *name) noexcept:
    if not c.unlocked and not PyErr_Occurred():
        _mark(name, False)


cdef const void *api_interface(const char *name, uint32_t major) noexcept:
    """No other table is there yet."""
    return NULL


# ---- the table -----------------------------------------------------------------------------------------------------

cdef tgx_api table


cdef int _fill() except -1:
    table.size, table.major, table.minor = sizeof(tgx_api), TGX_MAJOR, TGX_MINOR
    table.features = TGX_HAS_OPS | TGX_HAS_AUTOGRAD | TGX_HAS_THREADS | TGX_HAS_RANDOM
    table.interface, table.fail, table.fail_text = <void *>api_interface, <void *>tgx_api_fail, <void *>tgx_api_fail_text
    table.register_op, table.resolve, table.call = <void *>api_register_op, <void *>api_resolve, <void *>api_call
    table.view, table.view_mut, table.geometry = <void *>api_view, <void *>api_view_mut, <void *>api_geometry
    table.empty, table.empty_like, table.contiguous = <void *>api_empty, <void *>api_empty_like, <void *>api_contiguous
    table.strided, table.wrap = <void *>api_strided, <void *>api_wrap
    table.retain, table.release, table.memory = <void *>api_retain, <void *>api_release, <void *>api_memory
    table.requires_grad, table.node_new = <void *>api_requires_grad, <void *>api_node_new
    table.node_state, table.save, table.unpack = <void *>api_node_state, <void *>api_save, <void *>api_unpack
    table.needs, table.set_history = <void *>api_needs, <void *>api_set_history
    table.next_sequence = <void *>api_next_sequence
    table.no_grad_enter, table.no_grad_leave = <void *>api_no_grad_enter, <void *>api_no_grad_leave
    table.parallel_for, table.interrupted = <void *>api_parallel_for, <void *>api_interrupted
    table.random_bits, table.random_uniform = <void *>api_random_bits, <void *>api_random_uniform
    table.random_normal = <void *>api_random_normal
    table.range_begin, table.range_end = <void *>api_range_begin, <void *>api_range_end
    return 0


_fill()
_C_API = PyCapsule_New(&table, "tinygrad_ext._C_API", NULL)


def pretend(int minor):
    """Be the table of 1.<minor>, to see what an extension says to an older core."""
    if not 0 <= minor <= TGX_MINOR:
        raise ValueError(f"TINYGRAD_EXT_ABI_PRETEND: there is no table 1.{minor}; from 1.0 to 1.{TGX_MINOR} can be pretended")
    _fill()
    if minor == 0:
        table.size, table.minor = <uint32_t>SIZE_OF_1_0, 0
        table.features &= ~<uint64_t>TGX_HAS_RANDOM
        table.random_bits = table.random_uniform = table.random_normal = NULL
        table.range_begin = table.range_end = NULL


def facts():
    """Versions, size and features of the table, for humans."""
    return {"major": table.major, "minor": table.minor, "size": table.size, "features": table.features}


# ---- libraries -----------------------------------------------------------------------------------------------------

cdef class Library:
    """An extension that was opened. It stays in memory: what it computed may hold addresses in it."""

    cdef const tgx_extension *data
    cdef readonly str path

    @property
    def declared(self):
        """(size, major, minor, needs) as the extension exports them."""
        return self.data.size, self.data.major, self.data.minor, self.data.needs

    @property
    def name(self):
        return None if self.data.name == NULL else (<bytes>self.data.name).decode("utf-8", "replace")

    @property
    def version(self):
        return None if self.data.version == NULL else (<bytes>self.data.version).decode("utf-8", "replace")

    def start(self, register):
        """Call init; register(definition) is called for each op."""
        who = self.name or os.path.basename(self.path)
        if self.data.init == NULL:
            raise RuntimeError(f"{who}: {self.path} exports tgx_extension_v1 without an init")
        start_at(who, <size_t>self.data.init, register)


def start_at(str who not None, size_t address, register):
    """Call the init at an address of this process: of a module that was compiled with tgx.pxd."""
    cdef tgx_ctx c
    cdef int code
    tgx_open(&c, <PyObject *>who)
    c.target = <PyObject *>register
    try:
        code = (<int (*)(tgx_ctx *, const tgx_api *)>address)(&c, &table)
        if code or PyErr_Occurred():
            settle_error(&c, code, "init")
    finally:
        tgx_close(&c)


def open_library(str path not None):
    """The extension in a file. OSError when it cannot be loaded, or exports no tgx_extension_v1."""
    cdef Library made = Library.__new__(Library)
    cdef void *handle = dlopen(os.fsencode(path), RTLD_NOW | RTLD_LOCAL)
    if handle == NULL:
        raise OSError(f"load_library: {(<bytes>dlerror()).decode('utf-8', 'replace')}")
    made.path = path
    made.data = <const tgx_extension *>dlsym(handle, "tgx_extension_v1")
    if made.data == NULL:
        raise OSError(f"load_library: {path} exports no tgx_extension_v1: end one of its files with TGX_EXTENSION(\"name\", "
                      "\"version\", init)")
    return made
