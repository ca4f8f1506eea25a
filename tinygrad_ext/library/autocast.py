"""What autocast does with the ops of libraries: the dtype, or the function, that each has for a type of device."""

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.dtype import by_name, device
from tinygrad_ext.core.data.dtype import dtype as _dtype
from tinygrad_ext.library import state as _state
from tinygrad_ext.registry import scope as _scope

# The types of devices that autocast knows, whether they are here or not: what is registered for the others is refused
DEVICES = ("cpu", "cuda", "mps", "xpu", "xla", "hpu", "ipu", "mtia", "maia", "privateuseone")


def put(op, device_type, rule, scope, override=False):
    """Register the dtype or the function of an op for autocast on a type of device."""
    state = _state.state_of(op)
    if device_type in state.autocast and not override:
        raise RuntimeError(
            f"{op.name}: there is a rule of autocast for the device '{device_type}' already. Leave one of them out, or "
            "say allow_override=True where this is meant"
        )
    scope.put(state.autocast, device_type, rule)


def rule_of(op, device_type):
    """The dtype or the function that is registered for an op, or None."""
    found = _state.states.get(op.name)
    return found.autocast.get(device_type) if found is not None and not found.gone else None


def apply(op, function, args):
    """Call a function with the arguments of an op, the keyword-only ones by keyword."""
    declared = op.schema.args
    names = [a.name for a in declared if a.kwarg_only]
    split = len(declared) - len(names)
    return function(*args[:split], **dict(zip(names, args[split:], strict=False)))


def register(op, device_type, cast_inputs, scope):
    """Register a dtype, after a look at both."""
    if not isinstance(device_type, str):
        raise ValueError(
            f"register_autocast({op.name!r}): device_type must be a string such as 'cpu', not {device_type!r}"
        )
    kind = device(device_type).type
    if kind not in DEVICES:
        raise ValueError(f"Device type '{device_type}' does not support autocast. Those that do: {', '.join(DEVICES)}")
    if not isinstance(cast_inputs, _dtype) or not cast_inputs.is_floating_point:
        raise TypeError(
            f"register_autocast({op.name!r}): cast_inputs must be a floating dtype such as {by_name['bfloat16']}, "
            f"not {cast_inputs!r}"
        )
    put(op, kind, cast_inputs, scope, True)


@boundary
def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Let autocast convert the floating arguments of an op to a dtype, and then run it with autocast off.

    Args:
        op: name of the op, or its definition or overload.
        device_type: "cpu", or another that autocast knows, whose rule waits for such tensors.
        cast_inputs: the dtype.
        lib: the Library with which the rule goes.

    Raises RuntimeError for an op that does not exist, ValueError for a device type that autocast does not know.
    """
    if _state.is_of_a_refused_library(op, "register_autocast"):
        return
    found = _state.find(op, "register_autocast")
    if lib is not None:
        lib._check_alive()
    register(found, device_type, cast_inputs, _scope.current() if lib is None else lib._scope)
