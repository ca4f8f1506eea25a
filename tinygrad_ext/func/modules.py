"""Modules as functions of their parameters and buffers."""

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.nn.modules.norm import _BatchNorm
from tinygrad_ext.nn.utils.stateless import call_with
from tinygrad_ext.registry import functions


@boundary
def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call a module with other tensors in the place of its parameters and buffers.

    Arguments:
        parameter_and_buffer_dicts: {name: tensor}, or several such dicts without names in common. What the module
            assigns to those names, or writes in place, is found there afterwards; the module itself stays as it is.
        args: the arguments of the call, in a tuple unless there is only one. kwargs: those by keyword.
        tie_weights: a tensor that the module has under several names is replaced under all of them.
        strict: the names must be those of the module, no more and no fewer.

    Raises ValueError for names that are given twice, or two values for tied names; RuntimeError for names that strict
    refuses; TypeError for what is no tensor.

    Example::

        params = dict(model.named_parameters())
        grads = func.grad(lambda p: loss(functional_call(model, p, x), y))(params)
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, (list, tuple)):
            raise ValueError(
                f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
            )
        if not all(isinstance(d, dict) for d in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in given for name in d]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: value for d in given for name, value in d.items()}
    return call_with(module, given, args, kwargs, tie_weights, strict)


@boundary
def stack_module_state(models):
    """(parameters, buffers) of several models of one class, stacked: dicts of tensors with one row for each model.

    With `vmap` over `functional_call` they run as one. The stacked tensors are leaves, which require grad as the
    models' do. Raises RuntimeError for no models, models of several classes, in different modes, or whose tensors
    differ in shape or in requires_grad.
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return (
        {name: _stacked([p[name] for p in parameters], name) for name in parameters[0]},
        {name: _stacked([b[name] for b in buffers], name) for name in buffers[0]},
    )


def _stacked(tensors, name):
    if len({t.requires_grad for t in tensors}) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return functions["stack"]([t.detach() for t in tensors]).requires_grad_(tensors[0].requires_grad)


@boundary
def replace_all_batch_norm_modules_(root):
    """Take the running statistics out of every batch norm below a module, so that it can run under vmap; returns it.

    Each then normalises by its own batch, in evaluation too.
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
