"""custom_op: a Python function made an op, with the object that takes its kernels, derivative and fake kernel."""

import contextlib
import warnings

from tinygrad_ext import registry
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.callables import OpFunction, enable_vectorcall
from tinygrad_ext.library import autocast, autograd, infer
from tinygrad_ext.library import state as _state
from tinygrad_ext.library.absent import register_torch_dispatch
from tinygrad_ext.ops.record import Record
from tinygrad_ext.registry import op_namespace, scope
from tinygrad_ext.registry.op_registrar import OpRegistrar
from tinygrad_ext.registry.tags import words

definitions = {}  # "ns::name" -> CustomOpDef
_scopes = {}  # name of an op that this program may undefine -> the scope that holds its registration


@boundary
def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None, samples=None):
    """Make a function an op: `ops.<ns>.<name>`, which autograd sees as one step.

    Args:
        name: "<namespace>::<name>".
        fn: what computes it; left out, `custom_op` returns a decorator.
        mutates_args: names of the arguments that fn writes to; () for none, "unknown" for all tensors.
        device_types: "cpu", or several; None when fn serves all devices.
        schema: "(Tensor x) -> Tensor" for a function without type hints, from which it is read otherwise.
        tags: a `Tag` or several.
        samples: what the checks call it with: a function of a Maker that yields ops.samples.Sample(*args, **kwargs).

    Returns a CustomOpDef, which is called like fn. Raises ValueError for a name without namespace and for type hints
    without a word in a schema, RuntimeError for a name that is taken.

        >>> import tinygrad_ext as torch
        >>> @torch.library.custom_op("docs::numpy_sin", mutates_args=())
        ... def numpy_sin(x: torch.Tensor) -> torch.Tensor:
        ...     return torch.from_numpy(__import__("numpy").sin(x.numpy()))
        >>> numpy_sin(torch.zeros(2))
        tensor([0., 0.])
    """

    def define(fn):
        _state.split(name, "custom_op")
        text = infer.infer_schema(fn, mutates_args=mutates_args, tags=tags) if schema is None else schema.strip()
        op = define_op(name, text, scope.current(), tags=tags, place=_state.place_of(fn), doc=_doc(fn), samples=samples)
        try:
            if schema is not None:
                _check_mutates(op, mutates_args)
            return _finish(op, fn, device_types)
        except BaseException:
            undefine(op.name)
            raise

    return define if fn is None else define(fn)


@boundary
def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """`custom_op` for a function that calls kernels for GPUs by `wrap_triton`: its op is there, as for any function."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def _doc(fn):
    """The docstring of a function; that of a partial or another object is its class's."""
    return fn.__doc__ if infer.plain_function(fn) is fn else None


def _finish(op, fn, device_types):
    own = _scopes[op.name]
    state = _state.state_of(op)
    found = CustomOpDef(op, fn, state)
    own.put(definitions, op.name, found)
    register_kernel(state, device_types, fn, own)
    return found


def define_op(name, text, parent, *, tags, place, doc=None, samples=None):
    """Register an op without a kernel; text is its schema after the name, place its (file, line). Returns the Op."""
    fields = {"compose": _state.undefined, "tags": words(tags), "doc": doc, "samples": samples}
    own = parent.child()
    register = OpRegistrar(own)
    op = register.add(Record(f"{name}{text}", *place, None, fields))
    register.close()
    state = _state.State(op)
    own.put(_state.states, op.name, state)
    state.made_here, state.own = True, own
    state.settle()
    own.put(_scopes, op.name, own)
    own.note(state.leave)
    return op


@boundary
def undefine(name):
    """Take back an op that custom_op or define registered, so that the name is free again: for a notebook.

    Raises ValueError for a name without namespace, RuntimeError when no such op was registered here.
    """
    _state.split(name, "undefine")
    own = _scopes.get(name)
    if own is None:
        what = "was registered in another way" if name in registry.ops else "does not exist"
        raise RuntimeError(
            f"undefine: the op '{name}' {what}; only what custom_op and define registered can be undefined"
        )
    if own.owner != scope.current().owner:
        raise RuntimeError(
            f"undefine: the op '{name}' belongs to {own.owner}; tinygrad_ext.plugins.disable takes back what a plugin "
            "brought"
        )
    own.undo()


def _check_mutates(op, mutates):
    written = {a.name for a in op.schema.args if a.is_write}
    named = {a.name for a in op.schema.args if a.type == "Tensor"} if mutates == "unknown" else set(mutates)
    if written != named:
        raise ValueError(
            f"custom_op({op.name!r}): the schema {op.schema} says that {_listed(written)} mutated, and mutates_args "
            f"that {_listed(named)}. Make them the same"
        )


def _listed(names):
    return f"{', '.join(sorted(names))} {'is' if len(names) == 1 else 'are'}" if names else "nothing is"


def register_kernel(state, device_types, fn, to, override=False):
    """Register fn for a device type, several, or None for all."""
    op = state.op
    kinds = (device_types,) if device_types is None or isinstance(device_types, str) else tuple(device_types)
    if kinds != (None,) and not _state.has_tensors(op.schema) and _state.device_argument(op.schema) is None:
        raise ValueError(
            f"{op.name}: Functions without tensor inputs are required to have a `device: torch.device` argument, which "
            "says whose kernel to take; or register one kernel for all devices, without device_types"
        )
    for kind in kinds:
        if kind is not None and (not isinstance(kind, str) or kind != kind.lower() or kind == "meta"):
            raise ValueError(
                f"{op.name}: {kind!r} is no device type with kernels. Write 'cpu', or whichever it is; for 'meta' use "
                "register_fake"
            )
        state.put(_state.ANY if kind is None else kind, fn, to, override=override)


@boundary
class CustomOpDef(OpFunction):
    """An op made by `custom_op`. Calling it calls the op; its methods add what the op needs."""

    def __init__(self, op, fn, state):
        super().__init__(op.schema.name, [op], doc=_doc(fn), owner=op.record.owner)
        for key in ("__module__", "__qualname__", "__name__"):
            setattr(self, key, getattr(fn, key, op.schema.name))
        self._init_fn, self._state = fn, state
        packet = getattr(registry.namespaces[op.schema.namespace], op.schema.name)
        self._opoverload = self.seen_as = op_namespace.overload_of(packet, op.schema.overload or "default")

    __doc__ = vars(OpFunction)["__doc__"]  # the instances' property, which this class's docstring would hide

    @property
    def _qualname(self):
        return self._state.op.name

    @property
    def _schema(self):
        return self._state.op.schema

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def __reduce__(self):
        return by_name, (self._qualname,)

    def register_kernel(self, device_types, fn=None, /):
        """Register what computes the op on a device type, or several; a decorator without fn.

        Raises RuntimeError when there is a kernel for it already.
        """

        def register(fn):
            register_kernel(self._state, device_types, fn, scope.current())
            return fn

        return register if fn is None else register(fn)

    def register_fake(self, fn, /):
        """Register what gives shape and dtype of the results without data: a function of the same arguments.

        It is called with tensors on the device meta, and returns such.
        """
        self._state.put(_state.FAKE, fn, scope.current())
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """Register the derivative.

        Args:
            backward: (ctx, *grads), one gradient for each argument that the op writes to and then for each return. It
                returns one for each positional argument, a list of them for a list of tensors, None where there is
                none; or a dict by argument name.
            setup_context: (ctx, inputs, output), or (ctx, inputs, keyword_only_inputs, output) for an op with
                keyword-only arguments: keeps on ctx what backward needs.

        Raises TypeError when the parameters of setup_context have other names, RuntimeError when there is a derivative.
        """
        autograd.put(self._state, backward, setup_context, scope.current())

    def register_jvp(self, jvp, /, *, setup_context=None):
        """Register forward mode. Without it tangents follow from the backward, if that can be differentiated itself.

        Args:
            jvp: (ctx, *tangents), one for each positional argument, None or lists as the arguments are; it returns one
                for each return. `ctx.saved_tensors` is what setup_context gave to `ctx.save_for_forward`.
            setup_context: as for `register_autograd`, whose setup_context serves where none is given.

        Raises as `register_autograd`.
        """
        autograd.put_jvp(self._state, jvp, setup_context, scope.current())

    def register_vmap(self, func=None, /):
        """Register the batched form, func(info, in_dims, *args, **keyword_only), for `vmap`."""

        def register(fn):
            self._state.put(_state.VMAP, fn, scope.current())
            return fn

        return register if func is None else register(func)

    def register_autocast(self, device_type, cast_inputs, /):
        """Let autocast convert the floating arguments to a dtype; see `register_autocast`."""
        autocast.register(self._state.op, device_type, cast_inputs, scope.current())

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """NotImplementedError: a class's own __torch_dispatch__ sees every op."""
        register_torch_dispatch(self, torch_dispatch_class, fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """Within `with`, switch the kernel of a device type off (or on again): the one for all devices takes its "
        "place."""
        state = self._state
        if state.get(device_type) is None:
            warnings.warn(
                f"{self._qualname}: there is no kernel for the device '{device_type}' to switch", stacklevel=3
            )
        before = device_type in state.disabled
        _switch(state, device_type, not enabled)
        try:
            yield
        finally:
            _switch(state, device_type, before)


enable_vectorcall(CustomOpDef)


def _switch(state, device_type, off):
    if off:
        state.disabled.add(device_type)
    else:
        state.disabled.discard(device_type)
    state.settle()


def by_name(name):
    """The CustomOpDef of a name; for pickle, which loads the plugin that has it."""
    op = _state.find(name, "unpickling a custom op")
    if op.name not in definitions:
        raise RuntimeError(f"unpickling a custom op: '{name}' is an op, but was not made by custom_op")
    return definitions[op.name]
