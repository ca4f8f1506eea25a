# cython: language_level=3
"""Instances of subclasses of Tensor, made of tensors that exist.

Neither the `__new__` nor the `__init__` of the subclass runs: both may want arguments that only its author knows.
"""
from copyreg import _slotnames

from cpython.object cimport PyObject, PyTypeObject
from tinygrad_ext.core.call.dispatch cimport state
from tinygrad_ext.core.data.dtype cimport CPU, META, device as Device, dtype_id
from tinygrad_ext.core.data.dtype import get_default_dtype
from tinygrad_ext.core.data.geometry cimport ANY_ROOM, reach, read_numbers
from tinygrad_ext.core.data.tensor cimport FRESH
from tinygrad_ext.core.data.slots cimport slot
from tinygrad_ext.core.data.tensor import attributes_of as plain_attributes
from tinygrad_ext.core.data.tensor cimport (
    REQUIRES_GRAD, RETAINS_GRAD, Carried, Parameter, Tensor, alias, blank, finish, let_know, needs_grad, set_geometry,
)
from tinygrad_ext.core.data.tracking cimport track_all
from tinygrad_ext.core.data.types cimport ITEMSIZE, TGX_MAX_DIMS, int64_t

cdef extern from "Python.h":
    ctypedef PyObject *(*newfunc)(PyTypeObject *, PyObject *, PyObject *) except NULL
    ctypedef struct CType "PyTypeObject":
        newfunc tp_new
        Py_ssize_t tp_basicsize, tp_dictoffset, tp_weaklistoffset
        unsigned long tp_flags
        PyObject *tp_dict
    ctypedef object (*getter)(object, void *)
    ctypedef int (*setter)(object, PyObject *, void *) except -1
    ctypedef struct PyGetSetDef:
        const char *name
        getter get
        setter set
        const char *doc
        void *closure
    object PyDescr_NewGetSet(PyTypeObject *type, PyGetSetDef *getset)
    int PyDict_SetItem(object mapping, object key, object value) except -1
    void PyType_Modified(PyTypeObject *type)
    void Py_DECREF(object o)
    void Py_INCREF(object o)
    void Py_SET_TYPE(object o, PyTypeObject *type)
    unsigned long Py_TPFLAGS_HEAPTYPE


cdef bint _any_dispatching = False
cdef object _noted = None           # the last class that was looked at


cdef int _note(cls) except -1:
    global _any_dispatching, _noted
    if not _any_dispatching and cls is not _noted:
        _any_dispatching, _noted = _has_dispatch(cls), cls
    return 0


cdef bint _has_dispatch(cls) except -1:
    return getattr(cls, "__torch_dispatch__", None) is not getattr(Tensor, "__torch_dispatch__", None)


cdef bint any_dispatching() noexcept:
    return _any_dispatching


cdef Tensor bare(cls):
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"expected a subclass of Tensor, not {cls!r}")
    _note(cls)
    return _made_by((<CType *>Tensor).tp_new, cls)


cdef object _made_by(newfunc new, cls):
    cdef PyObject *fresh = new(<PyTypeObject *>cls, <PyObject *>(), NULL)
    made = <object>fresh
    Py_DECREF(made)
    return made


cdef Tensor as_class(Tensor t, cls):
    cdef Tensor out = bare(cls)
    set_geometry(out, t)
    out.node, out.output_nr = t.node, t.output_nr
    out.base, out.view_version = t.base, t.view_version
    out.extra = t.extra
    if t.link.next == NULL or t.extra is not None:      # cls may be Tensor itself
        let_know(out, FRESH)
    out.bits = t.bits & ~(REQUIRES_GRAD | RETAINS_GRAD)
    return out


cdef Tensor reclass(Tensor t, cls):
    cdef object step = t
    if needs_grad(t):
        # t's gradient and in-place history are t's own: the new tensor is one step behind it
        state().below += 1
        try:
            step = slot("restride")(t, t.shape, t.stride(), t.storage_offset())
        finally:
            state().below -= 1
    return as_class(<Tensor>step, cls)


def as_subclass(self, cls):
    """The same tensor as an instance of cls, a subclass of Tensor: memory and version are shared, gradients flow through.

    Attributes and what `cls.__init__` would set are not there. Raises TypeError when cls is no subclass, RuntimeError for
    a value that a transform or a capture carries, which has no class of its own.
    """
    if type(self) is Carried and cls is not Tensor:
        if cls is Parameter:
            return Parameter(self, self.requires_grad)
        raise RuntimeError(f"as_subclass(): {self!r} is carried by a transform or a capture, where no tensor has a class "
                           f"of its own: make it a {cls.__name__} outside")
    return reclass(<Tensor?>self, cls)


def new(cls, *args, **kwargs):
    """`Tensor.__new__`: an empty vector that `__init__` fills; filled here where a subclass has an `__init__` of its own.

    class Named(Tensor):
        def __new__(cls, values, name):
            return super().__new__(cls, values)

        def __init__(self, values, name):
            self.name_ = name
    """
    made = bare(cls)
    if (args or kwargs) and cls.__init__ is not Tensor.__init__:
        Tensor.__init__(made, *args, **kwargs)
    return made


def attributes_of(Tensor t not None):
    """What the instance alone has: its attributes and the slots of its class that are set, as a dict."""
    cdef dict held = dict(plain_attributes(t) or ())
    for name in _slotnames(type(t)):
        if hasattr(t, name):
            held[name] = getattr(t, name)
    return held


def set_attributes(Tensor t not None, dict attributes not None):
    """Give t what `attributes_of` found."""
    slots = _slotnames(type(t))
    for name, value in attributes.items():
        if name in slots:
            setattr(t, name, value)
        else:
            t.__dict__[name] = value


def is_filled(Tensor t not None):
    """Whether t has data, or is known to have none."""
    return t.storage is not None or t.device_id != CPU


cdef object _class_of(object self, void *closure):
    return type(self)


cdef int _become(object self, PyObject *given, void *closure) except -1:
    """`self.__class__ = cls`: self itself becomes an instance of cls, another class of tensors that adds no slots.

    Python assigns a `__class__` between classes written in Python alone, as it cannot know that others are laid out
    alike. Here it is known: a Tensor has room for a `__dict__` and weak references. Like other instances of
    subclasses, self is known to the garbage collector from then on, also as a plain Tensor.
    """
    cdef CType *old
    cdef CType *new
    if given == NULL:
        raise TypeError("can't delete __class__ attribute")
    before, cls = type(self), <object>given
    if not (isinstance(cls, type) and issubclass(cls, Tensor)) or cls is Carried or before is Carried:
        _python_class.__set__(self, cls)        # says why not
        return 0
    old, new = <CType *>before, <CType *>cls
    if not (old.tp_basicsize == new.tp_basicsize and old.tp_dictoffset == new.tp_dictoffset
            and old.tp_weaklistoffset == new.tp_weaklistoffset):
        _python_class.__set__(self, cls)        # between classes with the same slots
        return 0
    if (<Tensor>self).link.next != NULL:
        track_all()
    if new.tp_flags & Py_TPFLAGS_HEAPTYPE:      # an instance of a class written in Python holds it
        Py_INCREF(cls)
    Py_SET_TYPE(self, <PyTypeObject *>cls)
    if old.tp_flags & Py_TPFLAGS_HEAPTYPE:
        Py_DECREF(before)
    return 0


_python_class = object.__dict__["__class__"]
cdef PyGetSetDef _class = PyGetSetDef("__class__", <getter>_class_of, <setter>_become, NULL, NULL)
PyDict_SetItem(<object>(<CType *>Tensor).tp_dict, "__class__", PyDescr_NewGetSet(<PyTypeObject *>Tensor, &_class))
PyType_Modified(<PyTypeObject *>Tensor)


def make_subclass(cls, Tensor data not None, bint require_grad=False):
    """An instance of cls over data's memory, outside its graph: what a subclass's `__new__` returns.

    class Celsius(Tensor):
        def __new__(cls, values):
            return Tensor._make_subclass(cls, tensor(values))
    """
    cdef Tensor made = as_class(alias(data), cls)
    return made.requires_grad_() if require_grad else made


def make_wrapper_subclass(cls, size, strides=None, storage_offset=None, memory_format=None, dtype=None, layout=None,
                          device=None, bint pin_memory=False, bint requires_grad=False, dispatch_sizes_strides_policy=None,
                          bint dispatch_device=False, bint dispatch_layout=False, _extra_dispatch_keys=None, storage_size=None):
    """An instance of cls with a shape and a dtype, and no data of its own: for a type that wraps other tensors.

    Its ops are carried out by the class's `__torch_function__` or `__torch_dispatch__`; a kernel of ours sees a meta tensor.

    Args:
        size, strides: of the tensor, in elements; row-major strides by default.
        device: where the wrapped data is, the cpu by default for a class with a `__torch_dispatch__`: what `.device` says.
        dispatch_sizes_strides_policy and what follows: accepted; sizes, device and layout are those said here, and the
            class is not asked for them.
    """
    if dispatch_sizes_strides_policy not in (None, "sizes", "strides"):
        raise ValueError("_make_wrapper_subclass(): dispatch_sizes_strides_policy must be None, 'sizes' or 'strides', got "
                         f"{dispatch_sizes_strides_policy!r}")
    cdef int64_t[TGX_MAX_DIMS] sizes
    cdef int64_t[TGX_MAX_DIMS] steps
    cdef int i, rank = read_numbers(size, sizes, "_make_wrapper_subclass", "size")
    cdef Tensor plain = blank(rank)
    if device is not None or _has_dispatch(cls):
        plain.extra = {"shown_device": Device("cpu" if device is None else device)}
    plain.tid = dtype_id(get_default_dtype() if dtype is None else dtype)
    plain.device_id = META
    if strides is not None:
        if read_numbers(strides, steps, "_make_wrapper_subclass", "strides") != rank:
            raise RuntimeError(f"_make_wrapper_subclass(): {rank} sizes need as many strides, got {len(strides)}")
        reach(sizes, steps, rank, 0, ITEMSIZE[plain.tid], ANY_ROOM, "_make_wrapper_subclass")
    else:
        reach(sizes, NULL, rank, 0, ITEMSIZE[plain.tid], ANY_ROOM, "_make_wrapper_subclass")
        for i in range(rank - 1, -1, -1):
            steps[i] = max(sizes[i + 1], 1) * steps[i + 1] if i + 1 < rank else 1
    for i in range(rank):
        plain.sizes[i], plain.strides[i] = sizes[i], steps[i]
    finish(plain)
    made = as_class(plain, cls)
    return made.requires_grad_() if requires_grad else made
