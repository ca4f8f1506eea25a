"""`NormalizeArgs`: calls with their arguments as the targets declare them."""

from tinygrad_ext import nn

from ..interpreter import Transformer
from ..normalize import normalized
from ..proxy import Proxy

__all__ = ["NormalizeArgs"]


class NormalizeArgs(Transformer):
    """Tells each call of a function and of a module of `nn` by keyword, with what is declared where nothing is given.

    Calls of what has `*args` or `**kwargs`, or whose declaration is not known, stay as they are. Nodes keep their
    meta and type.

    Args:
        module: a GraphModule.
        normalize_to_only_use_kwargs: False: arguments that may be given by their place are.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext.fx.experimental.normalize import NormalizeArgs
    >>> made = NormalizeArgs(tg.fx.symbolic_trace(lambda x: tg.nn.functional.elu(x, 0.5))).transform()
    >>> print(made.graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %elu : [num_users=1] = call_function[target=tinygrad_ext.nn.functional.elu](args = (), kwargs = {input: %x, \
alpha: 0.5, inplace: False})
        return elu
    """

    def __init__(self, module, normalize_to_only_use_kwargs=True):
        super().__init__(module)
        self.normalize_to_only_use_kwargs, self.node_map = normalize_to_only_use_kwargs, {}

    def run_node(self, n):
        made = super().run_node(n)
        if n.op != "output" and isinstance(made, Proxy):
            self.node_map[made] = n
            made.node.meta, made.node.type = n.meta, n.type
        return made

    def call_function(self, target, args, kwargs):
        return super().call_function(target, *self._told(target, args, kwargs))

    def call_module(self, target, args, kwargs):
        module = self.fetch_attr(target)
        if getattr(nn, type(module).__name__, None) is type(module):
            args, kwargs = self._told(module.forward, args, kwargs)
        return super().call_module(target, args, kwargs)

    def _told(self, function, args, kwargs):
        return normalized(function, args, kwargs, self.normalize_to_only_use_kwargs) or (args, kwargs)
