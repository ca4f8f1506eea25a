"""What derivative rules of pointwise ops share.

`fused.sigmoid_backward(...)` calls the op of that name: one pass over memory where a rule in plain ops would take
several. Such ops are registered with where="_fused", so that they are no public names.
"""

from tinygrad_ext.core.call.op_tables import functions


class _Fused:
    """Finds an op's function when it is first used, because rules are written before the functions exist."""

    def __getattr__(self, name):
        found = functions.get("_fused." + name) or functions.get(name) or functions.get("special." + name)
        found = found or functions["nn.functional." + name]
        setattr(self, name, found)
        return found


fused = _Fused()


def conj(value):
    """The conjugate of a complex tensor or number; anything else as it is."""
    if isinstance(value, (int, float, complex)):
        return value.conjugate()
    return value.conj_physical() if value.dtype.is_complex else value


def refusal(name, argument="self"):
    """The rule of an argument by which there is no derivative: told when a gradient arrives."""

    place = "its first argument" if argument == "self" else f"'{argument}'"

    def rule(grad):
        raise NotImplementedError(
            f"the derivative for '{argument}' is not implemented: {name} has none by {place}; detach() it"
        )

    return rule


def refusals(name, argument="self"):
    """The same for an op of several results."""

    def rule(grads):
        return refusal(name, argument)(grads)

    return rule


def refused_slope(name):
    """Forward mode of such an op."""

    def rule():
        raise NotImplementedError(
            f"{name} has no derivative, so it has none in forward mode: detach() what it is given"
        )

    return rule


def without_derivative(x):
    """x, behind which a gradient is refused."""
    return fused._without_derivative(x) if x.requires_grad else x


def zeros(grad):
    """No slope anywhere."""
    return fused.zeros_like(grad)
