"""The one way into the table of nn modules: `nn.plugins.<namespace>.<Name>`, `nn.create("namespace::Name")`."""

from tinygrad_ext import registry
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.registry.checks import check_name, check_namespace

_base = []  # nn.Module, from when nn is imported; until then nothing can be one
_holders, _taken = [], set()  # what nn.plugins is made of: no module and no namespace may hide it


def set_base(cls):
    """The class that every module inherits from."""
    _base[:] = [cls]


def set_place(namespace_class, taken):
    """Where modules stand: the class of nn.plugins.<namespace>, and the names that nn.plugins has without any."""
    _holders[:] = [namespace_class]
    _taken.update(taken)


class ModuleRegistrar:
    """Adds nn modules in the name of a scope's owner: register("vision::RoIAlign", RoIAlign)."""

    def __init__(self, to):
        self.scope = to

    def __call__(self, name, cls, *, samples=None):
        """Add a class under a name; returns the class.

        Args:
            name: "namespace::Name".
            cls: subclass of nn.Module.
            samples: function of a Maker that yields ops.samples.Sample(*inputs, **config) for the checks: config makes
                the module, the inputs go to its forward.

        Raises RuntimeError for a name that is taken or not the owner's, TypeError for what is no module class.
        """
        if self.scope is None:
            raise RuntimeError(f"{name}: `register` is for use inside the hook only, which is over")
        self._check(name, cls)
        if samples is not None and not callable(samples):
            raise TypeError(f"{name}: samples= takes a function of a Maker, not {samples!r}; see ops/samples.py")
        owner = self.scope.owner
        self.scope.put(registry.modules, name, cls)
        self.scope.put(registry.module_owners, cls, (name, owner))
        if samples is not None:
            self.scope.put(registry.module_samples, name, samples)
        return cls

    def _check(self, name, cls):
        if not isinstance(name, str):
            raise TypeError(f"register(name, cls): name must be a str such as 'vision::RoIAlign', not {name!r}")
        namespace, _, own = name.rpartition("::")
        if self.scope.owner != BUILTIN:
            check_namespace(name, namespace, self.scope)
        if not own.isidentifier():
            raise RuntimeError(f"{name}: '{own}' is no name for a class")
        check_name(name, "a module", own, *_holders)
        if namespace in _taken:
            raise RuntimeError(
                f"{name}: the namespace of a module cannot be called '{namespace}': nn.plugins.{namespace} is a part "
                "of tinygrad_ext. Choose another namespace"
            )
        if not (_base and isinstance(cls, type) and issubclass(cls, _base[0])):
            raise TypeError(f"{name}: expected a subclass of tinygrad_ext.nn.Module, got {cls!r}")
        for taken in (name if name in registry.modules else None, registry.module_owners.get(cls, [None])[0]):
            if taken is not None:
                _refuse(name, cls, taken, self.scope.owner)

    def close(self):
        """Refuse whatever comes after the end of the hook."""
        self.scope = None


def _refuse(name, cls, taken, owner):
    present = registry.modules[taken]
    theirs = registry.module_owners[present][1]
    raise RuntimeError(
        f"{name}: {_spelled(present)} is registered as '{taken}' already, by {theirs}; {owner} wants to add "
        f"{_spelled(cls)}. Ways out: rename it, uninstall one of the two, or disable one: "
        f"TINYGRAD_EXT_DISABLE_PLUGINS={theirs.distribution}"
    )


def _spelled(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


def owner_of(cls):
    """("vision::RoIAlign", Owner) of a module class or of the registered class it inherits from, else None."""
    for base in cls.__mro__ if registry.module_owners else ():
        if base in registry.module_owners:
            return registry.module_owners[base]
    return None
