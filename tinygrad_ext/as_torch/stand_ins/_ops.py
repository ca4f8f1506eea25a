"""torch._ops: the base of operators that take functions, `HigherOrderOperator`, with an implementation for each key.

Of PyTorch's dispatcher there is what such an operator asks for: modes, classes of tensors, autograd, and what stands
below it. Transforms and captures see the ops that an implementation calls.
"""

import abc
import threading

from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.overrides.dispatched import _get_current_dispatch_mode, _pop_mode_temporarily
from tinygrad_ext.utils import _pytree as pytree

from ._C import DispatchKey

_ABOVE = ("AutogradCPU", "AutogradMeta", "Autograd", "CompositeImplicitAutograd")
_BELOW = (
    "CPU",
    "Meta",
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
)
_higher_order_ops = {}
_state = threading.local()


class OperatorBase:
    """What is called by name, with implementations in Python."""

    def __init__(self):
        self.py_kernels = {}
        self.python_key_table = {}
        self.functorch_table = {}

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")

    def has_kernel_for_dispatch_key(self, k):
        """Whether something was given for this very key."""
        return k in self.py_kernels

    def py_impl(self, k):
        """Decorator of what is called for a key: a DispatchKey, a mode, a class of tensors, or a transform.

        Raises:
            AssertionError: for DispatchKey.Python, and where a mode or a class has its function already.
            RuntimeError: where a key has.
        """

        def take(fn):
            if isinstance(k, DispatchKey):
                if k is DispatchKey.Python:
                    raise AssertionError("Please register a mode for the DispatchKey.Python key instead.")
                if k in self.py_kernels:
                    raise RuntimeError(f"Trying to override a python impl for {k} on operator {self.name()}")
                self.py_kernels[k] = fn
                return fn
            of_mode = isinstance(k, type)
            table = self.python_key_table if of_mode else self.functorch_table
            if k in table:
                raise AssertionError(f"{k} already registered in {'python_key' if of_mode else 'functorch'}_table")
            table[k] = fn
            return fn

        return take

    def py_functionalize_impl(self, fn):
        """Take what runs where writes become functions; there is no such step here, so it is kept and not called."""
        self.functionalize_impl = fn
        return fn

    def name(self):
        """The name it was made with."""
        raise NotImplementedError(f"{type(self).__name__} does not define name")


class HigherOrderOperator(OperatorBase, abc.ABC):
    """An operator that takes functions; a subclass defines `__call__`, which hands on to this one.

    A call goes to what `py_impl` was given for the innermost mode, the class of an argument, autograd, or what stands
    below it, whichever comes first; `fallthrough` leaves a key out.
    """

    def __init__(self, name, *, cacheable=False, supports_training_input_mutation=False):
        super().__init__()
        self._name = self.__name__ = name
        self._ns, self.__module__ = "higher_order", "torch.ops.higher_order"
        self._cacheable = cacheable
        self._supports_training_input_mutation = supports_training_input_mutation
        self._passed = set()
        _higher_order_ops[name] = self

    namespace = property(lambda self: self._ns)

    def name(self):
        """The name it was made with."""
        return self._name

    def cacheable(self):
        """Whether it says of itself that a compiler may keep what it made of it."""
        return self._cacheable

    def __str__(self):
        return self._name

    def py_impl(self, k):
        self._passed.discard(k)
        return super().py_impl(k)

    def py_autograd_impl(self, fn):
        """Take what is called where gradients are recorded and an argument requires one; else the call goes below."""

        def maybe_run_autograd(*args, **kwargs):
            recorded = any(isinstance(x, Tensor) and x.requires_grad for x in pytree.tree_leaves((args, kwargs)))
            if recorded and is_grad_enabled():
                return fn(*args, **kwargs)
            above, _state.below = getattr(_state, "below", False), True
            try:
                return self(*args, **kwargs)
            finally:
                _state.below = above

        self.py_impl(DispatchKey.Autograd)(maybe_run_autograd)
        return fn

    def fallthrough(self, dispatch_key):
        """Go past a key."""
        self._passed.add(dispatch_key)

    @abc.abstractmethod
    def __call__(self, /, *args, **kwargs):
        mode = _get_current_dispatch_mode()
        if mode is not None:
            found = self._in_mode(mode, args, kwargs)
            if found is not NotImplemented:
                return found
        tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        for x in tensors:
            if type(x).__torch_dispatch__ is Tensor.__torch_dispatch__:
                continue
            fn = self.python_key_table.get(type(x))
            if fn is None:
                raise NotImplementedError(
                    f"There was no rule registered for HOP {self._name} and subclass {type(x)}: give one by "
                    f"py_impl({type(x).__name__})"
                )
            found = fn(*args, **kwargs)
            if found is not NotImplemented:
                return found
        return self._kernel(tensors)(*args, **kwargs)

    def _in_mode(self, mode, args, kwargs):
        fn = self.python_key_table.get(type(mode))
        if fn is None and not getattr(mode, "supports_higher_order_operators", False):
            raise NotImplementedError(
                f"There was no rule registered for HigherOrderOperator {self._name} and mode {mode}. "
                f"Hint: set {mode}'s supports_higher_order_operators to True, and its __torch_dispatch__ gets it"
            )
        with _pop_mode_temporarily() as popped:
            if fn is None:
                return popped.__torch_dispatch__(self, [], args, kwargs)
            return fn(popped, *args, **kwargs)

    def _kernel(self, tensors):
        """What stands for autograd, or below it where that is left out or there is no tensor to ask."""
        place = "Meta" if any(x.is_meta for x in tensors) else "CPU"
        other = "CPU" if place == "Meta" else "Meta"
        passed = {DispatchKey.Autograd, DispatchKey[f"Autograd{place}"]} & self._passed
        skips_autograd = not tensors or getattr(_state, "below", False)
        for key in () if skips_autograd or passed else _ABOVE:
            if not key.endswith(other) and DispatchKey[key] in self.py_kernels:
                return self.py_kernels[DispatchKey[key]]
        wanted = place if skips_autograd or passed else f"Autograd{place}"
        for key in _BELOW if wanted == place else ():
            key = DispatchKey[key]
            if key is not DispatchKey[other] and key in self.py_kernels and key not in self._passed:
                return self.py_kernels[key]
        raise NotImplementedError(
            f"could not find kernel for HigherOrderOperator {self._name} at dispatch key DispatchKey.{wanted} "
            f"(resolved from DispatchKey.{wanted}): give one by py_impl, or leave the key out by fallthrough"
        )
