"""torch.utils._contextlib: contexts that are decorators too."""

import contextlib
import functools
import inspect


def context_decorator(ctx, func):
    """The function, each call of which runs inside a context: `ctx`, or what `ctx()` gives."""
    if inspect.isclass(func):
        raise RuntimeError("a context decorates functions: decorate the methods of the class")
    fresh = (lambda: ctx) if hasattr(ctx, "__enter__") and not callable(ctx) else ctx

    @functools.wraps(func)
    def inside(*args, **kwargs):
        with fresh():
            return func(*args, **kwargs)

    return inside


class _DecoratorContextManager(contextlib.ContextDecorator):
    """A context that decorates: each call of the function enters a clone."""

    def _recreate_cm(self):
        return self.clone()

    def clone(self):
        """Another of the kind."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One whose type decorates as well."""

    def __new__(cls, orig_func=None):
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
