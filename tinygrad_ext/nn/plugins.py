"""Modules that plugins bring: `nn.plugins.<namespace>.<Name>`, and `create`, which makes a module by its name."""

from tinygrad_ext import registry
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later
from tinygrad_ext.registry import module_registrar


class ModuleNamespace:
    """Module classes of one namespace, as attributes."""

    __slots__ = ("_name",)

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return module_class(f"{self._name}::{name}")

    def __dir__(self):
        return names(self._name)

    def __repr__(self):
        return f"<nn modules of namespace '{self._name}': {', '.join(names(self._name))}>"


def names(namespace):
    """Names of the modules of a namespace that are loaded."""
    return sorted(key.partition("::")[2] for key in registry.modules if key.startswith(namespace + "::"))


def module_class(name):
    """The class called "namespace::Name"; loads the plugin. AttributeError that says why there is none."""
    if name not in registry.modules:
        plugins = later("plugins")
        namespace, _, own = name.partition("::")
        plugins.load_namespace(namespace)
        if name not in registry.modules:
            raise AttributeError(
                plugins.why_no_module(namespace, own)
                if names(namespace)
                else plugins.why_no_namespace(namespace, "module")
            )
    return registry.modules[name]


@boundary
def create(name, /, **config):
    """Make the module called "namespace::Name"; built-in ones stand in the namespace nn.

    Args:
        name: "nn::Linear", or "<namespace>::<Name>" of a plugin's module, which is loaded when need be.
        config: arguments of the class, by name.

    Raises LookupError for an unknown name, TypeError for arguments the class does not take.

    >>> from tinygrad_ext import nn
    >>> nn.create("nn::Linear", in_features=3, out_features=2)
    Linear(in_features=3, out_features=2, bias=True)
    """
    if not isinstance(name, str):
        raise TypeError(f"nn.create(): argument 'name' must be str, such as 'nn::Linear', not {type(name).__name__}")
    if "::" not in name:
        raise LookupError(f"nn.create(): '{name}' has no namespace; built-in modules are called 'nn::{name}'")
    try:
        cls = module_class(name)
    except AttributeError as error:
        raise LookupError(f"nn.create(): {error}") from None
    try:
        return cls(**config)
    except TypeError as error:
        raise TypeError(f"nn.create('{name}') of {registry.module_owners[cls][1]}: {error}") from error


@boundary
def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(f"module 'tinygrad_ext.nn.plugins' has no attribute '{name}'")
    plugins = later("plugins")
    if not names(name):
        plugins.load_namespace(name)
    if not names(name):
        raise AttributeError(plugins.why_no_namespace(name, "module"))
    return ModuleNamespace(name)


def __dir__():
    return sorted({key.partition("::")[0] for key in registry.modules} - {"nn"} | later("plugins").declared())


module_registrar.set_place(ModuleNamespace, globals())
