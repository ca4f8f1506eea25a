"""What is registered for an op beside its record: kernels by device, the fake kernel, backward, vmap rule.

Each step is noted in a scope, and `scope.undo()` takes it back; so a Library that only adds a kernel to somebody
else's op leaves the op as it was.
"""

import contextlib

from tinygrad_ext import registry
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.data.dtype import device
from tinygrad_ext.library import fake, infer
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.registry import compiler, op_registrar
from tinygrad_ext.registry.checks import check_kernel_returns

ANY = None  # the device type of a kernel that serves whatever has none of its own
COMPOSITE = "composite"  # the "device" of a function written in other ops, whose derivative follows from theirs
FAKE, AUTOGRAD, VMAP, JVP = "fake kernel", "backward", "vmap rule", "forward-mode rule"

states = {}  # name of an op -> State
refused_libraries = []  # paths of compiled libraries that load_library has refused
_install_backward = None  # slot of autograd.py


def set_install_backward(function):
    """function(state): make the registered backward the derivative of the op."""
    global _install_backward
    _install_backward = function


def undefined(*args, **keywords):
    """Stands in the record of an op that was declared without a kernel; never called."""
    raise NotImplementedError("the op has no kernel")


class State:
    """The functions of one op. `put` changes them, `settle` makes the op use them."""

    def __init__(self, op):
        self.op = op
        self.functions = {}  # device type, ANY, COMPOSITE, FAKE, AUTOGRAD, VMAP or JVP -> (function, its place)
        self.autocast = {}  # device type -> dtype or function: see autocast.py
        self.disabled = set()  # device types whose kernels are switched off
        self.own = None  # the scope of the op alone, where define_op made it
        self.gone = False  # the op was taken back; who holds it goes on calling it as it was
        self.made_here = False  # by define_op: the record follows, and gradients without a backward stop with an error
        if op.kernel_kind == "python":
            self.functions[ANY] = op.record.kernel, (op.record.source, op.record.line)
        elif op.kernel_kind == "composite" and op.record.compose is not undefined:
            self.functions[COMPOSITE] = op.record.compose, (op.record.source, op.record.line)
        if callable(op.shape_rule):
            self.functions[FAKE] = op.shape_rule, (op.record.source, op.record.line)

    def put(self, key, fn, scope, *, override=False):
        """Register a function. RuntimeError when there is one already, unless override."""
        what = _title(key)
        if not callable(fn):
            raise TypeError(f"{self.op.name}: the {what} must be a function, not {type(fn).__name__}")
        place = place_of(fn)
        with op_registrar.lock():
            if key in self.functions and not override:
                old = "{}:{}".format(*self.functions[key][1])
                raise RuntimeError(
                    f"{self.op.name}: there is a {what} already, from {old}; {place[0]}:{place[1]} brings another one. "
                    "Leave one "
                    "of them out, or say allow_override=True where this is meant"
                )
            before = self.functions.get(key)
            self.functions[key] = fn, place
            try:
                self.settle()
            except BaseException:
                self._restore(key, before)
                raise
            if scope is not self.own:
                scope.note(self._restore, key, before)

    def leave(self):
        """The op is being taken back."""
        self.gone = True

    def _restore(self, key, before):
        if self.gone:
            return
        if before is None:
            self.functions.pop(key, None)
        else:
            self.functions[key] = before
        self.settle()

    def get(self, key):
        """The registered function, or None."""
        return self.functions.get(key, (None,))[0]

    def kernel_for(self, device_type):
        """The function that computes the op on a device, or None."""
        own = None if device_type in self.disabled else self.get(device_type)
        return own if own is not None else self.get(ANY)

    def settle(self):
        """Make the compiled op call what is registered."""
        op, compose = self.op, self.get(COMPOSITE)
        kernels = [key for key in self.functions if key is ANY or key not in (COMPOSITE, FAKE, AUTOGRAD, VMAP, JVP)]
        if self.made_here:
            shown = self.get(ANY) or (self.functions[kernels[0]][0] if kernels else None)
            op.record.kernel, op.record.compose = shown, None if kernels else compose or undefined
        if kernels:
            check_kernel_returns(op.schema)
            compiler.set_python_kernel(op, self._kernel())
        elif compose is not None:
            compiler.set_composite(op, compose)
            if self.get(AUTOGRAD) is not None:
                raise RuntimeError(
                    f"{op.name}: the op is written in other ops (CompositeImplicitAutograd), so its derivative is "
                    "theirs, but it "
                    "has a backward too. Register the function as a kernel instead: 'CompositeExplicitAutograd', or a "
                    "device"
                )
        else:
            compiler.set_python_kernel(op, self._refuse_device)
        op.set_rows({key: self.get(key) for key in kernels if key != "cpu" and key not in self.disabled})
        op.set_shape_rule(self._shape_rule())
        if kernels or compose is None:
            _install_backward(self)

    def _kernel(self):
        at = device_argument(self.op.schema)
        if at is not None:
            return self._by_device_argument(at)
        if not has_tensors(self.op.schema):
            fn = self.get(ANY)
            return fn if fn is not None else self._refuse_no_tensor
        fn = self.kernel_for("cpu")
        return fn if fn is not None else self._refuse_device

    def _by_device_argument(self, at):
        """For an op without tensors the argument `device` says which kernel computes it."""

        def choose(*args, **keywords):
            where = device(keywords[at] if at in keywords else args[names.index(at)] or "cpu")
            fn = self.get(FAKE) if where.type == "meta" else None
            fn = fn if fn is not None else self.kernel_for(where.type)
            if fn is None:
                self._refuse_device(where=where.type)
            return fn(*args, **keywords)

        names = [a.name for a in self.op.schema.args]
        return choose

    def _refuse_device(self, *args, where="cpu", **keywords):
        have = sorted(
            k for k in self.functions if k not in (ANY, COMPOSITE, FAKE, AUTOGRAD, VMAP, JVP) and k not in self.disabled
        )
        raise NotImplementedError(
            f"{self.op.name}: there is no kernel for the device '{where}'; "
            f"{'there are kernels for ' + ', '.join(have) if have else 'the op has been declared only'}. "
            f"Register one with library.register_kernel('{self.op.name}', '{where}')"
        )

    def _refuse_no_tensor(self, *args, **keywords):
        raise NotImplementedError(
            f"{self.op.name}: no argument is a tensor, so nothing says which device's kernel to take; register one for "
            "all devices: library.impl(..., 'default')"
        )

    def _shape_rule(self):
        rule = self.get(FAKE)
        return fake.refusal(self.op) if rule is None else fake.rule(self.op, rule)


def state_of(op):
    """The State of an op, made when first asked for. RuntimeError for built-in ops."""
    if op.record.owner == BUILTIN:
        raise RuntimeError(
            f"{op.name} is a built-in op, and nothing can be registered for it. Override its calls with "
            "__torch_function__ or a "
            "TorchFunctionMode, or define an op of your own"
        )
    found = states.get(op.name)
    if found is None or found.op is not op:
        found = states[op.name] = State(op)
    return found


def backward_place(op):
    """(file, line) of the op's backward, or None."""
    found = states.get(op.name)
    return (
        found.functions[AUTOGRAD][1] if found is not None and found.op is op and AUTOGRAD in found.functions else None
    )


def find(op, what):
    """The Op that a name, a definition, an overload or a packet of one overload means.

    Raises ValueError for a name without a namespace, RuntimeError for an op that does not exist.
    """
    if not isinstance(op, str):
        candidates = getattr(op, "candidates", ())
        if len(candidates) != 1:
            raise ValueError(
                f"{what}: expected the name of an op or an overload such as ops.ns.name.default, got {op!r}"
            )
        return candidates[0]
    split(op, what)
    name = op.removesuffix(".default")
    if name not in registry.ops:
        _load(name)
    if name not in registry.ops:
        raise RuntimeError(_unknown(name, what))
    return registry.ops[name]


def is_of_a_refused_library(op, what):
    """Whether nobody has defined any op of this name's namespace, and a compiled library was refused, which may have.

    Packages go on without the library that they bring, and register what belongs to its ops all the same: that is
    dropped then, so that they can be imported, and the ops are missed where they are called.
    """
    if not (refused_libraries and isinstance(op, str)):
        return False
    namespace = split(op, what)[0]
    _load(op)
    return not any(name.startswith(namespace + "::") for name in registry.ops)


def split(name, what):
    """("ns", "name") of "ns::name"; ValueError when there is no namespace."""
    namespace, colons, rest = name.partition("::") if isinstance(name, str) else ("", "", "")
    if not (namespace and colons and rest):
        raise ValueError(
            f"{what}: {name!r} must be a name with a namespace, '<namespace>::<name>', such as 'mylib::{rest or name}'"
        )
    return namespace, rest


def _load(name):
    with contextlib.suppress(AttributeError):
        later("plugins").load_namespace(name.partition("::")[0])


def _unknown(name, what):
    import difflib

    namespace = name.partition("::")[0]
    near = difflib.get_close_matches(name, [n for n in registry.ops if n.startswith(namespace + "::")], 1)
    hint = (
        f"Did you mean '{near[0]}'?"
        if near
        else f"Define it first, with library.custom_op or library.define('{name}', ...)."
    )
    return f"{what}: there is no op '{name}'. {hint}"


def has_tensors(schema):
    """Whether some argument is a tensor or a list of them."""
    return any(a.type == "Tensor" for a in schema.args)


def device_argument(schema):
    """Name of the argument `device` of an op without tensors, else None."""
    if has_tensors(schema):
        return None
    return next((a.name for a in schema.args if a.type == "Device" and a.name == "device"), None)


def _title(key):
    return {ANY: "kernel for all devices", COMPOSITE: "composite"}.get(key) or (
        key if key in (FAKE, AUTOGRAD, VMAP, JVP) else f"kernel for the device '{key}'"
    )


def place_of(fn):
    """(file, line) of a function, or of what a wrapper, a partial or a callable object calls."""
    code = getattr(infer.plain_function(fn), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else (repr(fn), 0)
