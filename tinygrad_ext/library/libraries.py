"""Library, and the functions that register by the name of an op."""

import keyword
import sys

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.library import autocast, autograd, definition
from tinygrad_ext.library import state as _state
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.registry import device_registrar, dtype_registrar
from tinygrad_ext.registry import scope as _scope

_KINDS = ("DEF", "IMPL", "FRAGMENT")
# PyTorch's dispatch keys that have a meaning here; the others are refused with a word on what to use
_KEYS = {
    "": _state.COMPOSITE,
    "CompositeImplicitAutograd": _state.COMPOSITE,
    "CompositeExplicitAutograd": _state.ANY,
    "CompositeExplicitAutogradNonFunctional": _state.ANY,
    "default": _state.ANY,
    "Meta": _state.FAKE,
    "meta": _state.FAKE,
}
_DEVICES = ("CPU", "CUDA", "MPS", "XPU", "XLA", "HPU", "IPU", "MTIA", "PrivateUse1")
# What PyTorch puts before a device's name in a key. No tensor here calls for one of these on a device that is not here,
# so such kernels are taken and never called, as in a PyTorch without it; nor are there quantized or nested ones.
_BEFORE_DEVICES = ("Autograd", "SparseCsr", "Sparse", "Quantized", "NestedTensor", "Autocast")
_NOT_HERE = ("HIP", "VE", "Lazy", "MAIA", "FPGA", "Vulkan", "Metal", "PrivateUse2", "PrivateUse3")
_defined = {}  # namespace -> the Library of kind "DEF"


@boundary
class Library:
    """Registrations that are taken back together.

    Args:
        ns: namespace.
        kind: "DEF" for the one that defines the namespace's ops, "FRAGMENT" to add some, "IMPL" for kernels only.
        dispatch_key: the key that `impl` takes when it is given none.

    `with Library(...) as lib:` takes everything back at the end, `lib._destroy()` at any time; a Library that is merely
    dropped leaves its ops where they are. Raises ValueError for another kind and for a reserved namespace, RuntimeError
    for a second "DEF" of a namespace.
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in _KINDS:
            raise ValueError(f"Library({ns!r}): Unsupported kind: {kind!r}. It is one of {', '.join(_KINDS)}")
        if ns in ("prim", "prims"):
            raise ValueError(f"Library({ns!r}): the namespace '{ns}' is reserved. Choose one of your own")
        if not isinstance(ns, str) or not ns.isidentifier() or keyword.iskeyword(ns):
            raise ValueError(
                f"Library: the namespace must be an identifier such as 'mylib', and no keyword of Python, not {ns!r}"
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        frame = sys._getframe(1)
        self._place = frame.f_code.co_filename, frame.f_lineno
        self._alive = True
        self._scope = _scope.current().child()
        if kind == "DEF":
            self._take_namespace()

    def _take_namespace(self):
        first = _defined.get(self.ns)
        if first is not None:
            raise RuntimeError(
                f"Library({self.ns!r}, 'DEF'): the namespace has a 'DEF' already, at "
                f"{first._place[0]}:{first._place[1]}. Only a "
                "single one can define it; add to it with Library(ns, 'FRAGMENT')"
            )
        self._scope.put(_defined, self.ns, self)

    def __repr__(self):
        key = f", dispatch_key={self.dispatch_key!r}" if self.dispatch_key else ""
        return f"Library(kind={self.kind}, ns={self.ns}{key})" + ("" if self._alive else " (destroyed)")

    def __enter__(self):
        self._check_alive()
        return self

    def __exit__(self, *exc):
        self._destroy()

    def _destroy(self):
        """Take back all that was registered through this object."""
        self._alive = False
        self._scope.undo()

    def _check_alive(self):
        if not self._alive:
            raise AssertionError(f"{self!r}: Library object has been destroyed")

    def define(self, schema, alias_analysis="", *, tags=()):
        """Declare an op, "name(Tensor x) -> Tensor"; returns its name. The kernels come by `impl`.

        Raises RuntimeError for a schema that cannot be read, a name that is taken, and a Library of kind "IMPL".
        """
        frame = sys._getframe(1)
        return self._define(schema, alias_analysis, tags, (frame.f_code.co_filename, frame.f_lineno))

    def _define(self, schema, alias_analysis, tags, place):
        self._check_alive()
        if self.kind == "IMPL":
            raise RuntimeError(
                f"{self!r}: a Library of kind 'IMPL' adds kernels only. Use 'DEF' or 'FRAGMENT' to define ops"
            )
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        name, bracket, rest = schema.strip().partition("(")
        name = f"{self.ns}::{name.strip().removeprefix(f'{self.ns}::')}"
        op = definition.define_op(name, bracket + rest, self._scope, tags=tags, place=place)
        return op.name.partition("::")[2]

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """Register what computes an op.

        Args:
            op_name: name of an op of the namespace, or its overload object.
            fn: a function of the op's arguments; keyword-only ones come by keyword.
            dispatch_key: "" or "CompositeImplicitAutograd" for a function written in other ops, whose derivative is
                theirs; "CompositeExplicitAutograd" for a kernel for all devices, "CPU" for one, "Meta" for the fake
                kernel, "AutocastCPU" for what autocast calls in place of the op. Keys of tensors that are not here, as
                "AutocastCUDA", are taken and not called.
            allow_override: replace a function that is there.

        Raises RuntimeError for an op that does not exist, and for a second kernel of one key.
        """
        self._check_alive()
        if with_keyset:
            raise NotImplementedError(
                f"{self!r}.impl: with_keyset=True: there are no dispatch keys to hand on. Leave it out"
            )
        op = _state.find(self._full(op_name), "Library.impl")
        if op.schema.namespace != self.ns:
            raise RuntimeError(f"{self!r}.impl: {op.name} is not an op of the namespace '{self.ns}'")
        put_kernel(op, dispatch_key or self.dispatch_key, fn, self._scope, allow_override)

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """NotImplementedError: there are no dispatch keys to fall back from; a TorchFunctionMode sees all calls."""
        raise NotImplementedError(
            f"{self!r}.fallback: there are no dispatch keys here. To see or to change every call, use a "
            "TorchFunctionMode"
        )

    def _full(self, op_name):
        return f"{self.ns}::{op_name}" if isinstance(op_name, str) and "::" not in op_name else op_name


@boundary
def fallthrough_kernel():
    """Stands for no kernel: `impl(name, fallthrough_kernel, key)` leaves the op as it is.

    NotImplementedError where it is called.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _is_never_called(key):
    """Whether a dispatch key is of tensors that cannot be here."""
    before = next((word for word in _BEFORE_DEVICES if key.startswith(word)), "")
    where = key.removeprefix(before)
    if before in ("Quantized", "NestedTensor") and where == "CPU":
        return True
    return where in _NOT_HERE or (before not in ("", "Autocast") and where != "CPU" and where in _DEVICES)


def put_kernel(op, key, fn, scope, override=False):
    """Register a function for an op under one of PyTorch's dispatch keys or a device type."""
    if fn is fallthrough_kernel or _is_never_called(key):
        return
    if key.startswith("Autocast") and key.removeprefix("Autocast") in _DEVICES:
        autocast.put(op, key.removeprefix("Autocast").lower(), fn, scope, override)
        return
    if key not in _KEYS and key not in _DEVICES and not key.islower():
        hint = (
            f"Give the op a derivative with library.register_autograd('{op.name}', backward, setup_context=...)"
            if "Autograd" in key or key == "ADInplaceOrView"
            else f"Known are {', '.join(repr(k) for k in (*_KEYS, *_DEVICES))}, and device types such as 'cpu'"
        )
        raise NotImplementedError(f"{op.name}: there is no dispatch key {key!r} here. {hint}")
    kind = _KEYS[key] if key in _KEYS else key.lower()
    if op.record.owner == BUILTIN:
        return device_registrar.put_kernel(op, kind, fn, scope, override)
    state = _state.state_of(op)
    if kind is _state.FAKE or kind is _state.COMPOSITE:
        state.put(kind, fn, scope, override=override)
    else:
        definition.register_kernel(state, kind, fn, scope, override)


def _scope_of(lib):
    """Where a registration goes: to the Library, else to the plugin or program that runs."""
    if lib is None:
        return _scope.current()
    lib._check_alive()
    return lib._scope


@boundary
def define(qualname, schema, *, lib=None, tags=()):
    """Declare an op: define("mylib::sin", "(Tensor x) -> Tensor"). Its kernels come by `impl`.

    Args:
        qualname: "<namespace>::<name>"; or a Library, and then `define` is the decorator of the op's function.
        schema: what comes after the name; with a Library, name included.
        lib: the Library that owns the op.
    """
    if isinstance(qualname, Library):
        return _define_by(qualname, schema)
    _state.split(qualname, "define")
    if not isinstance(schema, str) or not schema.strip().startswith("("):
        raise ValueError(
            f"define({qualname!r}): the schema must begin after the name, '(Tensor x) -> Tensor', not {schema!r}"
        )
    frame = sys._getframe(1)
    definition.define_op(
        qualname, schema.strip(), _scope_of(lib), tags=tags, place=(frame.f_code.co_filename, frame.f_lineno)
    )
    return None


def _define_by(lib, schema):
    def register(fn):
        lib.impl(lib._define(schema, "", (), _state.place_of(fn)), fn)
        return fn

    return register


@boundary
def impl(qualname, types, func=None, *, lib=None):
    """Register what computes an op on device types: impl("mylib::sin", "cpu", fn), or without fn a decorator.

    `types`: "cpu", several, "default" for all devices, or a dispatch key. impl(lib, "sin", "CPU") is the decorator form
    that takes a Library.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def register(fn):
            library.impl(name, fn, key)
            return fn

        return register
    op = _state.find(qualname, "impl")

    def register_all(fn):
        for key in (types,) if isinstance(types, str) else tuple(types):
            put_kernel(op, key, fn, _scope_of(lib))
        return fn

    return register_all if func is None else register_all(func)


@boundary
def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Register what computes an op on a device type, several, or None for all; a decorator without func.

    Raises RuntimeError for an op that does not exist, and when there is a kernel for the device already.
    """
    found = _state.find(op, "register_kernel")

    def register(fn):
        if found.record.owner == BUILTIN:
            for kind in (device_types,) if isinstance(device_types, str) else tuple(device_types or (None,)):
                device_registrar.put_kernel(found, kind, fn, _scope_of(lib))
        else:
            definition.register_kernel(_state.state_of(found), device_types, fn, _scope_of(lib))
        return fn

    return register if func is None else register(func)


@boundary
def register_device(name, memory, *, lib=None):
    """Bring a device: tensors can be made on `device(name)` and moved there, and ops can have kernels for it.

    Args:
        name: small letters, digits and _.
        memory: an object with `allocate(nbytes)`, which returns (address, owner): a number above 0, and what keeps the
            block until the last tensor on it goes; `read(address, into)` and `write(address, data)`, which copy bytes
            from and to a memoryview that is theirs during the call.

    The kernels come by `impl("aten::add.Tensor", name, function)`. Raises RuntimeError for a name that is taken.
    """
    device_registrar.bring(name, memory, _scope_of(lib))


@boundary
def register_dtype(name, *, values=None, itemsize=None, widen=None, narrow=None, lib=None):
    """Bring a dtype, whose elements are codes of one or two bytes, and return it.

    Kernels compute in float32 and round once. With a dtype of the package it promotes as bfloat16 does, with another
    that was brought to float32.

    Args:
        name: small letters, digits and _.
        values: the number that each code stands for, 256 or 65,536 of them, all of them float32. A result becomes the
            nearest, half way the one with the even code; beyond the last it becomes infinite where the dtype has
            infinities, else a NaN where it has one, else the last.
        itemsize, widen, narrow: in place of values, bytes of an element and two functions in C, as ctypes has them or
            by address: `void widen(const void *codes, float *to, int64_t n)` and
            `void narrow(const float *from, void *codes, int64_t n)`. They are called from several threads.
        lib: the Library with which the dtype goes.

    Raises RuntimeError for a name that is taken, ValueError and TypeError for what is no dtype.
    """
    facts = {"values": values, "itemsize": itemsize, "widen": widen, "narrow": narrow}
    return dtype_registrar.bring(name, _scope_of(lib), **facts)


@boundary
def register_fake(op, func=None, /, *, lib=None, allow_override=False):
    """Register what gives shape and dtype of an op's results on meta tensors; a decorator without func."""
    if _state.is_of_a_refused_library(op, "register_fake"):
        return (lambda fn: fn) if func is None else func
    found = _state.find(op, "register_fake")

    def register(fn):
        _state.state_of(found).put(_state.FAKE, fn, _scope_of(lib), override=allow_override)
        return fn

    return register if func is None else register(func)


@boundary
def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Register the derivative of an op; see CustomOpDef.register_autograd."""
    if _state.is_of_a_refused_library(op, "register_autograd"):
        return
    found = _state.find(op, "register_autograd")
    autograd.put(_state.state_of(found), backward, setup_context, _scope_of(lib))


@boundary
def register_jvp(op, jvp, /, *, setup_context=None, lib=None):
    """Register forward mode for an op; see CustomOpDef.register_jvp."""
    found = _state.find(op, "register_jvp")
    autograd.put_jvp(_state.state_of(found), jvp, setup_context, _scope_of(lib))


@boundary
def register_vmap(op, func=None, /, *, lib=None):
    """Register the batched form of an op, kept for transforms that ask for it; a decorator without func."""
    found = _state.find(op, "register_vmap")

    def register(fn):
        _state.state_of(found).put(_state.VMAP, fn, _scope_of(lib))
        return fn

    return register if func is None else register(func)
