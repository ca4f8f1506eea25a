"""A definition in C becomes a record like any other, with the functions of the extension in the places of Python's."""

from tinygrad_ext.autograd import grad as gradients_of
from tinygrad_ext.autograd.modes import enable_grad
from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.core.grad import custom
from tinygrad_ext.library import autograd
from tinygrad_ext.library import state as _state
from tinygrad_ext.ops.record import Record
from tinygrad_ext.registry import compiler
from tinygrad_ext.registry.op_registrar import OpRegistrar

from .calls import TableCall
from .definitions import returns_of
from .kernels import Kernel, run_backward, run_batch, run_jvp, set_up


def add(definition, scope, path, facts):
    """Register the op of a definition in a scope; returns it.

    facts: fields of the record that are Python's: samples, reference, errors, ... Raises as the registrar does.
    """
    composite, has_backward, own_history, has_shape, has_jvp, has_batch = returns_of(definition)
    kernel = Kernel()
    fields = {"doc": definition.doc, **facts, "compose" if composite else "kernel": kernel}
    register = OpRegistrar(scope)
    op = register.add(Record(definition.schema, definition.source or path, definition.line, None, fields))
    register.close()
    call = TableCall(op, compiler.returns_of(op.schema), definition)
    kernel.bind(call)
    if not composite:
        custom.attach(op, call)
    state = _state.State(op)
    scope.put(_state.states, op.name, state)
    state.own = scope
    state.made_here = not composite and not op.record.grad
    if has_shape:
        state.put(_state.FAKE, _fake(op, call), scope)
    if has_batch:
        state.put(_state.VMAP, _batch(op, call), scope)
    if has_jvp:
        _put_jvp(state, call, scope)
    if has_backward and not op.record.grad:  # else graphs and transforms go by the rules
        _put_backward(state, call, scope)
    elif own_history:
        _put_recomputed(state, call, scope)
    state.settle()
    scope.note(state.leave)
    return op


def _fake(op, call):
    def fake(*args, **keywords):
        return call.meta((*args, *[keywords[a.name] for a in op.schema.args[len(args) :]]), _meta(args))

    return fake


def _meta(args):
    from tinygrad_ext.core.data.dtype import device  # lazy: for tensors without data only

    return device("meta")


def _batch(op, call):
    def batch(info, in_dims, *args):
        found = run_batch(call, info.batch_size, [d is not None for d in in_dims], args)
        return found, 0 if isinstance(found, Tensor) else (0,) * len(found)

    return batch


def _all(op, inputs, keywords):
    return (*inputs, *[keywords[a.name] for a in op.schema.args if a.kwarg_only])


def _with_inputs(op, keep):
    """setup_context of the right parameters: keep(ctx, all arguments, output)."""
    if any(a.kwarg_only for a in op.schema.args):

        def setup_context(ctx, inputs, keyword_only_inputs, output):
            keep(ctx, _all(op, inputs, keyword_only_inputs), output)
    else:

        def setup_context(ctx, inputs, output):
            keep(ctx, inputs, output)

    return setup_context


def _put_jvp(state, call, scope):
    op = state.op

    def keep(ctx, args, output):
        ctx.table_args, ctx.table_output = args, output

    def jvp(ctx, *tangents):
        rest = [None] * (len(op.schema.args) - len(tangents))
        return run_jvp(call, tuple(ctx.table_args), ctx.table_output, [*tangents, *rest])

    autograd.put_jvp(state, jvp, _with_inputs(op, keep), scope)


# ---- the backward as functions, for levels and for ops that write to their arguments -------------------------------


def _put_backward(state, call, scope):
    op = state.op
    places = call.edge_places

    def keep(ctx, args, output):
        ctx.table_counts = [len(args[i]) if isinstance(args[i], (list, tuple)) else None for i in places]
        wanted = _flat(_wanted(ctx, args), places, ctx.table_counts, False)
        ctx.table_made, saved = set_up(call, tuple(args), output, wanted)
        ctx.save_for_backward(*saved)

    def backward(ctx, *grads):
        wanted = _flat(ctx.needs_input_grad, places, ctx.table_counts, True)
        found = iter(run_backward(ctx.table_made, tuple(ctx.saved_tensors), _leaves(grads), wanted))
        row = [None] * sum(not a.kwarg_only for a in op.schema.args)
        for i, count in zip(places, ctx.table_counts):
            row[i] = next(found) if count is None else [next(found) for _ in range(count)]
        return tuple(row)

    autograd.put(state, backward, _with_inputs(op, keep), scope)


def _wanted(ctx, args):
    return getattr(ctx, "needs_input_grad", None) or [True] * len(args)


def _flat(row, places, counts, default):
    """What belongs to each edge, those of lists in turn."""
    found = []
    for i, count in zip(places, counts):
        value = row[i] if i < len(row) else default
        if count is None:
            found.append(bool(value))
        else:
            found += [bool(v) for v in value] if isinstance(value, (list, tuple)) else [bool(value)] * count
    return tuple(found)


def _leaves(grads):
    found = []
    for g in grads:
        found += g if isinstance(g, (list, tuple)) else [g]
    return found


def _put_recomputed(state, call, scope):
    """An op that makes its own node has no formula to hand out: where one is asked for, it is run once more."""
    op = state.op

    def keep(ctx, args, output):
        ctx.table_args = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*[a if isinstance(a, Tensor) else None for a in args])

    def backward(ctx, *grads):
        if any(type(t) is Carried for t in (*ctx.saved_tensors, *_leaves(grads))):
            raise RuntimeError(
                f"{op.name}: the kernel makes its own node (TGX_OWN_HISTORY), which a graph or a transform cannot "
                "write down. Give the definition setup and backward instead"
            )
        if any(t is not None and t.device.type == "meta" for t in ctx.saved_tensors):
            rest = ctx.saved_tensors  # there are no elements to compute on
            return tuple(
                [None if t is None else t.new_empty(t.shape) for t, d in zip(rest, op.schema.args) if not d.kwarg_only]
            )
        with enable_grad():
            given = [a if t is None else _leaf(t) for a, t in zip(ctx.table_args, ctx.saved_tensors)]
            result = call.run_recorded(tuple(given))
        pairs = [
            (r, g) for r, g in zip(_leaves((result,)), _leaves(grads)) if isinstance(r, Tensor) and r.requires_grad
        ]
        leaves = [a for a in given if isinstance(a, Tensor) and a.requires_grad]
        if pairs and leaves:
            roots, seeds = zip(*pairs)
            found = dict(zip(map(id, leaves), gradients_of(roots, leaves, seeds, allow_unused=True)))
        else:
            found = {}
        return tuple([found.get(id(a)) for a, d in zip(given, op.schema.args) if not d.kwarg_only])

    autograd.put(state, backward, _with_inputs(op, keep), scope)


def _leaf(t):
    t = t.detach()
    return t.requires_grad_() if t.is_floating_point() or t.is_complex() else t
