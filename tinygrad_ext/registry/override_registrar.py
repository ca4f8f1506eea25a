"""The one way for plugins to handle types they do not own."""

from tinygrad_ext.registry import foreign

handled = {}  # "scipy.sparse._csr.csr_array" or "scipy.sparse" -> Owner of the handler


class OverrideRegistrar:
    """Adds handlers in the name of a scope's owner: register("scipy.sparse", handler)."""

    def __init__(self, to):
        self.scope = to

    def __call__(self, target, handler):
        """Let handler(func, types, args, kwargs) see calls that have an argument of a type.

        Args:
            target: the type, or a prefix of the names of modules whose types are meant.
            handler: like `__torch_function__`; NotImplemented leaves the call to others.

        Raises RuntimeError when another owner handles the same target, TypeError for what is no type or prefix.
        """
        if self.scope is None:
            raise RuntimeError(f"{target}: `register` is for use inside the hook only, which is over")
        name = name_of(target)
        if name in handled:
            raise RuntimeError(
                f"calls with {name} are handled by {handled[name]} already; {self.scope.owner} wants to handle them "
                f"too. Uninstall or disable one: TINYGRAD_EXT_DISABLE_PLUGINS={handled[name].distribution}"
            )
        handle = foreign.register(target, handler, owner=str(self.scope.owner))
        self.scope.note(handle.remove)
        self.scope.put(handled, name, self.scope.owner)

    def close(self):
        """Refuse whatever comes after the end of the hook."""
        self.scope = None


def name_of(target):
    """How a type, or a prefix of modules, is called in `handled`."""
    return f"{target.__module__}.{target.__qualname__}" if isinstance(target, type) else target
