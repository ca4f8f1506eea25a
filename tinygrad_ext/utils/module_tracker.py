"""Which modules are running, in their forward and in the backward pass through it."""

import weakref

from tinygrad_ext.autograd.graph import register_multi_grad_hook
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.engine import current_pass
from tinygrad_ext.errors import refuse_unknown

from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]
__getattr__ = refuse_unknown(__name__)


@boundary
class ModuleTracker:
    """Knows within a `with` block which modules are running.

    ``parents`` has their names: that of the class of the outermost module and the attributes that lead from it, as
    "Net.layers.0", and always "Global". In a backward pass a module runs from the gradients of its outputs to those of
    its inputs; where no input has one, until the pass ends.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.utils.module_tracker import ModuleTracker
        >>> model = tg.nn.Sequential(tg.nn.Linear(2, 2))
        >>> with ModuleTracker() as tracker:
        ...     handle = model[0].register_forward_hook(lambda *_: print(sorted(tracker.parents)))
        ...     result = model(tg.ones(1, 2))
        ['Global', 'Sequential', 'Sequential.0']
        >>> tracker.parents
        {'Global'}
    """

    def __init__(self):
        self.parents = {"Global"}
        self._names = weakref.WeakKeyDictionary()
        self._ends = False  # whether the backward pass that runs clears `parents` at its end
        self._handles, self._of_module = [], ()

    @property
    def is_bw(self):
        """Whether a backward pass is running."""
        return current_pass() is not None

    def __enter__(self):
        hooks = later("module hooks")
        self._of_module = (
            hooks.register_module_forward_pre_hook(self._entered),
            hooks.register_module_forward_hook(self._left),
        )
        return self

    def __exit__(self, *exc):
        for handle in (*self._of_module, *self._handles):
            handle.remove()
        self._handles.clear()

    def _name(self, module):
        if module not in self._names:
            for path, part in module.named_modules():
                self._names[part] = ".".join([type(module).__name__, *([path] if path else [])])
        return self._names[module]

    def _entered(self, module, args):
        name = self._name(module)
        self.parents.add(name)
        self._when_there(args, lambda grads: self.parents.discard(name))

    def _left(self, module, args, result):
        name = self._name(module)
        self.parents.discard(name)

        def back(grads):
            if not self._ends:
                self._ends = True
                current_pass().call_at_end(self._end)
            self.parents.add(name)

        self._when_there(result, back)

    def _when_there(self, values, hook):
        """Call a hook in each backward pass that has the gradients of the tensors among values."""
        tensors = [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, hook))

    def _end(self):
        self.parents, self._ends = {"Global"}, False
