"""register_autograd: a backward, and a setup_context that keeps what it needs, made the derivative of an op."""

import inspect
from types import SimpleNamespace

from tinygrad_ext.core.grad import custom
from tinygrad_ext.core.grad.custom_call import OpNode
from tinygrad_ext.core.grad.plan import plan_of_names
from tinygrad_ext.library import state as _state

_PLAIN = ("ctx", "inputs", "output")
_WITH_KEYWORDS = ("ctx", "inputs", "keyword_only_inputs", "output")


def put(state, backward, setup_context, scope, override=False):
    """Register a backward for an op."""
    op = state.op
    if not callable(backward):
        raise TypeError(f"{op.name}: the backward must be a function, not {type(backward).__name__}")
    if op.record.grad:
        raise RuntimeError(
            f"{op.name}: the op's record has derivative rules (grad=) already, at {op.record.source}:{op.record.line}; "
            "an op has "
            "one derivative"
        )
    only = [a.name for a in op.schema.args if a.type == "Tensor" and a.kwarg_only and not a.is_write]
    if only:
        raise NotImplementedError(
            f"{op.name}: register_autograd with the keyword-only tensors {', '.join(only)}; gradients go to positional "
            "arguments. Declare them before the '*'"
        )
    derivative = Derivative(op, backward, setup_context)
    state.put(_state.AUTOGRAD, derivative, scope, override=override)


def put_jvp(state, jvp, setup_context, scope):
    """Register forward mode for an op."""
    op = state.op
    if not callable(jvp):
        raise TypeError(f"{op.name}: the jvp must be a function, not {type(jvp).__name__}")
    if op.record.grad or op.record.jvp is not None:
        raise RuntimeError(
            f"{op.name}: the op's record has derivative rules already, at {op.record.source}:{op.record.line}; give "
            "jvp= there"
        )
    state.put(_state.JVP, Derivative(op, jvp, setup_context), scope)


class Derivative:
    """A backward, or a jvp, with its setup_context, checked."""

    def __init__(self, op, backward, setup_context):
        self.backward = backward
        self.__wrapped__ = backward  # for the place in messages
        self.keyword_inputs = any(a.kwarg_only for a in op.schema.args)
        self.setup = None if setup_context is None else _in_order(op, setup_context, self.keyword_inputs)

    def __call__(self, ctx, *grads):
        return self.backward(ctx, *grads)


def _in_order(op, setup, with_keywords):
    """setup_context as a function of positional arguments; TypeError when its parameters have other names."""
    expected = _WITH_KEYWORDS if with_keywords else _PLAIN
    if not callable(setup):
        raise TypeError(f"{op.name}: setup_context must be a function, not {type(setup).__name__}")
    try:
        parameters = inspect.signature(setup).parameters.values()
    except ValueError:  # a callable of C
        return setup
    names = tuple(
        p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    )
    if names == expected:
        return setup
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    if set(names) == set(expected) or (open_ended and set(names) <= set(expected)):
        return lambda *args: setup(**dict(zip(expected, args, strict=True)))
    why = " because the op has keyword-only arguments" if with_keywords else ""
    raise TypeError(
        f"{op.name}: setup_context takes ({', '.join(names)}), but its parameters must be called "
        f"({', '.join(expected)}){why}"
    )


def install(state):
    """Give the compiled op the backward of its state; without one, a node that says what is missing."""
    op, row = state.op, custom.custom_of(state.op)
    if row is None:
        return
    derivative = state.get(_state.AUTOGRAD)
    if derivative is None and not state.made_here:
        row.set_autograd(None, None, None, False)
        return
    lists = any(a.type == "Tensor" and a.is_list for a in (*op.schema.args, *op.schema.returns))
    backward = _missing(op) if derivative is None else derivative.backward
    if lists:
        backward = _listed(backward)
    function = SimpleNamespace(
        backward=backward, vjp=backward, boxed_grads_call=False, clear_saved_tensors_on_access=False, __name__=op.name
    )
    names = () if lists else [a.name for a in op.schema.args if not a.kwarg_only]
    formula = _missing(op) if derivative is None else derivative.backward
    node_type = type(op.node_type, (OpNode,), {"__module__": __name__, "formula": staticmethod(formula)})
    setup = None if derivative is None else derivative.setup
    row.set_autograd(plan_of_names(function, names), node_type, setup, setup is not None and derivative.keyword_inputs)


def _missing(op):
    def backward(ctx, *grads):
        raise RuntimeError(
            f"Trying to backward through {op.name} but no autograd formula was registered. Please use "
            "register_autograd to add "
            f"one: library.register_autograd('{op.name}', backward, setup_context=setup_context)"
        )

    return backward


def _listed(backward):
    """The backward of an op with lists of tensors: it is given lists of gradients, and returns some."""

    def run(ctx, *grads):
        return ctx.flat_grads(backward(ctx, *ctx.nested_grads(grads)))

    return run


_state.set_install_backward(install)
