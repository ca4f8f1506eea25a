"""`freeze`: a scripted module in evaluation mode whose attributes are constants of its graphs.

What no method writes becomes a constant: numbers and texts stand in the graph, so that branches on them, and those on
`self.training`, fall away while compiling; tensors are copies without a gradient that only the graph has. Which
attributes are written is found out by compiling: the first write of a constant one leaves it an attribute, and it
starts again.
"""

import inspect

from tinygrad_ext import nn
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.graph import passes

from ..tracing import TracedModule
from .modules import Thawed, class_of_module
from .script_module import RecursiveScriptModule, ScriptModule, called, methods_of


@boundary
def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A copy of a scripted module in evaluation mode, with its attributes, parameters and buffers as constants.

    Args:
        preserved_attrs: names of attributes ("sub.scale" too) that stay attributes, and of methods to be kept besides
            forward.
        optimize_numerics: accepted; nothing is changed that would change a bit.

    Attributes that a method writes stay attributes. Raises RuntimeError for a module in training mode, or one that is
    not compiled.
    """
    if not isinstance(mod, (ScriptModule, TracedModule)):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use jit.script() to script your module.")
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    if not isinstance(mod, RecursiveScriptModule):
        return mod
    wanted = [n for n in ("forward",) if n in methods_of(mod)]
    kept = set()
    for name in preserved_attrs or ():
        if inspect.isfunction(inspect.getattr_static(class_of_module(mod), name, None)):
            wanted.append(name)
        else:
            kept.add(_place(mod, name))
    while True:
        frozen = _copy(mod, kept)
        try:
            for name in dict.fromkeys(wanted):
                _fold(frozen._method(name).graph)
            if frozen._tgx_hooks is not None:
                _fold(called(frozen).graph)
            return frozen
        except Thawed as found:
            kept.add((found.path, found.name))


def _place(mod, name):
    """(path of a module with a point behind it, attribute) of a name."""
    path, _, attribute = name.rpartition(".")
    try:
        getattr(mod.get_submodule(path), attribute)
    except AttributeError:
        raise RuntimeError(f"freeze: preserved_attrs has '{name}', which the module does not have") from None
    return f"{path}." if path else "", attribute


def _copy(mod, kept):
    frozen = RecursiveScriptModule(mod, anew=True)
    for path, part in frozen.named_modules():
        own, prefix = part.__dict__, f"{path}." if path else ""
        own["_tgx_kept"] = mine = {name for at, name in kept if at == prefix}
        for table in (part._parameters, part._buffers):
            for name in [n for n, value in table.items() if n not in mine]:
                value = table.pop(name)
                own[name] = value if value is None else _constant(value)
    return frozen


def _constant(value):
    return value.detach().clone() if isinstance(value, Tensor) else value


def _fold(graph):
    if not graph.effects:
        passes.optimize(graph, [passes.Constants(), passes.DeadCode()])


def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None):
    """Nothing but a check that a module is compiled: its graphs are optimized, and convolutions stay what they are."""
    if not isinstance(mod, ScriptModule):
        raise TypeError(
            f"run_frozen_optimizations: expected a module that jit.freeze() gave, not {type(mod).__name__}. "
            "Call jit.freeze(jit.script(module.eval())) first"
        )


def optimize_for_inference(mod, other_methods=None):
    """The module in evaluation mode, frozen where it is compiled from source."""
    if isinstance(mod, RecursiveScriptModule) and "_tgx_kept" not in mod.__dict__:
        return freeze(mod.eval(), other_methods)
    return mod.eval() if isinstance(mod, nn.Module) else mod
