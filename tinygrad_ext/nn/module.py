"""Module: a tree of parameters, buffers and child modules with a ``forward``.

This file has registration, attribute access, the call and the printed form; walking, casting,
saving and hooks are mixed in from their own files.

Every part is also an entry of the instance ``__dict__`` (see `registry`), so reading
``self.weight`` never comes to `__getattr__`; only an unknown name does.
"""

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later

from ..core.data.tensor import Carried, Tensor
from .convert import Converting
from .hooks import CALL_TABLES, MARK_TABLES, Hooking, _global_live
from .parameter import Buffer, Parameter, is_parameter
from .registration import call_registration_hooks
from .registry import HookTable, Registry, own
from .state import STATE_TABLES, Saving
from .walk import Walking

try:
    from ._slots import speed_up
except ImportError:  # the package was not built with it; the same behaviour, 0.1 µs slower a call

    def speed_up(cls, base):
        """Leave the class as Python made it."""


REGISTRIES = ("_parameters", "_buffers", "_modules")
_PERSISTENCE = "_non_persistent_buffers_set"
_MANAGED = frozenset((*REGISTRIES, *CALL_TABLES))


class _Late:
    """A table that ``Module.__init__`` makes, in a module that never called it: made when first asked for.

    An instance that has the table finds it in its ``__dict__`` and does not come here.
    """

    def __init__(self, name):
        self._name = name

    def __get__(self, module, cls=None):
        if module is None:
            return self
        module._make_missing_tables()
        return module.__dict__[self._name]


@boundary
class Module(Walking, Converting, Saving, Hooking):
    """Base of all layers and models.

    A subclass calls ``super().__init__()``, assigns parameters and child modules as
    attributes, and defines ``forward``; the module is then called like a function.
    (Code from before 2018 leaves ``super().__init__()`` out; that works too.)

        >>> import tinygrad_ext as tg
        >>> class Twice(tg.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = tg.nn.Parameter(tg.ones(1) * 2)
        ...
        ...     def forward(self, input):
        ...         return input * self.factor
        >>> Twice()(tg.ones(2)).tolist()
        [2.0, 2.0]
    """

    training: bool = True
    call_super_init = False
    dump_patches = False
    _version = 1
    _tables_came_first = False
    _live_hooks = frozenset()
    _is_full_backward_hook = _compiled_call_impl = None

    def __init__(self, *args, **kwargs):
        if not self.call_super_init and (args or kwargs):
            self._refuse_arguments(args, kwargs)
        if not self.__dict__.pop("_tables_came_first", False):
            self._forget_parts()
            self._make_tables()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def _forget_parts(self):
        """A second ``__init__`` starts afresh."""
        if "_modules" in self.__dict__:
            for name in REGISTRIES:
                self.__dict__[name].clear()

    def _make_tables(self):
        attributes = _own_dict(self)
        attributes["training"] = True
        for name in REGISTRIES:
            attributes[name] = Registry(self)
        attributes[_PERSISTENCE] = set()
        self._init_hooks()
        self._init_state_hooks()

    def _make_missing_tables(self):
        """Do what ``__init__`` does, keeping what is there; an ``__init__`` that still comes must not empty it."""
        there = dict(self.__dict__)
        self._make_tables()
        self.__dict__.update(there, _tables_came_first=True)

    def _refuse_arguments(self, args, kwargs):
        name = type(self).__name__
        if kwargs:
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        raise TypeError(
            f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given; "
            "to hand arguments on to further bases set call_super_init = True on the class"
        )

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        speed_up(cls, Module)

    def __call__(self, *args, **kwargs):
        """Run the hooks, if there are any, and ``forward``."""
        if kwargs or self._live_hooks or _global_live:
            return self._call_impl(*args, **kwargs)
        return self.forward(*args)

    def _call_impl(self, *args, **kwargs):
        if self._live_hooks or _global_live:
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def compile(self, *args, **kwargs):
        """Let calls of this module run as `compile(self, ...)` makes them, which takes the arguments; hooks run around.

        Copies, and what is pickled, run as they were written.

        >>> import tinygrad_ext as tg
        >>> layer = tg.nn.Linear(2, 2)
        >>> layer.compile(fullgraph=True)
        >>> layer(tg.ones(3, 2)).shape
        torch.Size([3, 2])
        """
        later("compile").compile_in_place(self, *args, **kwargs)

    def forward(self, *input):
        """Compute the output; every subclass defines its own."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function; define forward(self, ...)'
        )

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that is part of the state but is not trained.

        Args:
            name: the attribute name.
            tensor: a Tensor, or None for a place that is empty for now.
            persistent: whether ``state_dict`` contains it.

        Raises:
            KeyError: the name is empty, dotted or taken.
            TypeError: ``tensor`` is neither a Tensor nor None.
        """
        self._check_free("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        tensor = call_registration_hooks("buffer", self, name, tensor)
        self._buffers[name] = tensor
        self._set_persistent(name, persistent)

    def _set_persistent(self, name, persistent):
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Add a parameter, or None for one that this instance does without.

        Raises:
            KeyError: the name is empty, dotted or taken.
            TypeError: ``param`` is neither a Parameter nor None.
            ValueError: ``param`` is the result of an op instead of a leaf.
        """
        self._check_free("parameter", name, "_parameters")
        if param is not None and not is_parameter(param):
            raise TypeError(
                f"cannot assign '{_type_name(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required); wrap a tensor as nn.Parameter(tensor)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                "explicitly. To express it as a function of another tensor, compute it in forward()."
            )
        self._parameters[name] = call_registration_hooks("parameter", self, name, param)

    def add_module(self, name, module):
        """Add a child module under ``name``; None keeps the place empty."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._check_free("module", name, "_modules")
        self._modules[name] = call_registration_hooks("module", self, name, module)

    def register_module(self, name, module):
        """The same as `add_module`."""
        self.add_module(name, module)

    def _check_free(self, kind, name, registry):
        """Refuse a name that cannot be an attribute or hides an existing one."""
        entries = own(self, registry)
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in entries and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def __getattr__(self, name):
        # Found here only if someone took the mirrored entry out of __dict__ by hand.
        for registry in REGISTRIES:
            entries = self.__dict__.get(registry, ())
            if name in entries:
                return entries[name]
        # With name and obj the interpreter adds the nearest attribute to the message it prints.
        message = f"'{type(self).__name__}' object has no attribute '{name}'"
        raise AttributeError(message, name=name, obj=self)

    def __setattr__(self, name, value):
        attributes = self.__dict__
        if isinstance(value, Parameter) or (type(value) is Carried and is_parameter(value)):
            self._make_room(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._make_room(name, "_modules")
            self._modules[name] = call_registration_hooks("module", self, name, value)
        elif isinstance(value, Buffer) and not self._is_part(name):
            self._make_room(name, "_buffers")
            self._take_buffer(name, value, value.persistent)
        elif name in attributes:
            self._set_known(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_known(self, name, value):
        """Assign to a name that the instance has; a registered one keeps its kind."""
        if "_modules" not in self.__dict__:
            object.__setattr__(self, name, value)
        elif name in _MANAGED:
            self._replace_table(name, value)
        elif name in own(self, "_parameters"):
            self._only_none(name, value, "parameter", "torch.nn.Parameter or None expected")
            self.register_parameter(name, None)
        elif name in self._modules:
            self._only_none(name, value, "child module", "torch.nn.Module or None expected")
            self._modules[name] = call_registration_hooks("module", self, name, None)
        elif name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                self._only_none(name, value, "buffer", "torch.nn.Buffer, torch.Tensor or None expected")
            self._take_buffer(name, value, name not in self._non_persistent_buffers_set)
        else:
            object.__setattr__(self, name, value)

    def _take_buffer(self, name, value, persistent):
        """Register what is assigned; a class whose own `register_buffer` knows no `persistent` is not told it."""
        if getattr(self.register_buffer, "__func__", None) is not Module.register_buffer:
            import inspect  # lazy: few classes have their own, and it takes long

            if "persistent" not in inspect.signature(self.register_buffer).parameters:
                if not persistent:
                    raise RuntimeError(
                        f"{_type_name(self)}.register_buffer() takes no argument 'persistent', so that the buffer "
                        f"'{name}', which is not persistent, cannot be assigned: give the method that argument"
                    )
                self.register_buffer(name, value)
                return
        self.register_buffer(name, value, persistent)

    def _is_part(self, name):
        attributes = self.__dict__
        return name in attributes.get("_parameters", ()) or name in attributes.get("_modules", ())

    def _only_none(self, name, value, kind, expected):
        if value is not None:
            raise TypeError(f"cannot assign '{_type_name(value)}' as {kind} '{name}' ({expected})")

    def _make_room(self, name, registry):
        """Take ``name`` away from whatever else has it, as plain assignment does."""
        if name in own(self, registry):
            return
        attributes = self.__dict__
        for other in REGISTRIES:
            if other != registry and name in attributes[other]:
                del attributes[other][name]
        self._non_persistent_buffers_set.discard(name)
        attributes.pop(name, None)

    def _replace_table(self, name, entries):
        """Take a plain dict given for one of our tables, and go on watching it."""
        attributes = self.__dict__
        if name in CALL_TABLES:
            attributes[name].clear()
            attributes[name] = HookTable(self._live_hooks, name, entries)
            return
        old = attributes[name]
        for gone in [part for part in old if part not in entries]:
            attributes.pop(gone, None)
        if not (isinstance(entries, Registry) and entries.belongs_to(self)):
            entries = Registry(self, entries)
        attributes[name] = entries

    def __delattr__(self, name):
        for registry in REGISTRIES:
            if name in self.__dict__.get(registry, ()):
                del self.__dict__[registry][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __setstate__(self, state):
        attributes = _own_dict(self)
        attributes.update(state)
        # A shallow copy arrives with the original's dicts; those must follow this instance instead.
        for name in attributes.keys() & set(REGISTRIES):
            entries = attributes[name]
            if not (isinstance(entries, Registry) and entries.belongs_to(self)):
                attributes[name] = Registry(self, entries)
        # What PyTorch saved has plain dicts, which no call would look into, and lacks those of later versions.
        for name in CALL_TABLES:
            entries = attributes.get(name, ())
            if not isinstance(entries, HookTable):
                attributes[name] = HookTable(attributes.setdefault("_live_hooks", set()), name, entries)

    def _replicate_for_data_parallel(self):
        """A module of the same attributes, buffers and children, in dicts of its own, and without parameters.

        Who spreads a model over devices gives it those as plain attributes. There is one device here, so that nothing
        of this package does; modules of libraries override it to keep what replicas share. How the module would be
        copied or pickled is not asked.
        """
        cls = type(self)
        replica = cls.__new__(cls)
        attributes = _own_dict(replica)
        attributes.update(_own_dict(self))
        for name in REGISTRIES:
            attributes[name] = Registry(replica, () if name == "_parameters" else attributes[name])
        for name in self._parameters:
            attributes.pop(name, None)
        replica._is_replica = True
        return replica

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """Return what the printed form shows between the parentheses of this module's own line."""
        return ""

    def __repr__(self):
        return described(self, [f"({name}): {module!r}" for name, module in self._modules.items()])

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__}
        for registry in REGISTRIES:
            names.update(self.__dict__.get(registry, ()))
        # "0", "1", ... of a Sequential cannot be typed after a dot.
        return sorted(name for name in names if not name[:1].isdigit())


for _name in (*REGISTRIES, _PERSISTENCE, *CALL_TABLES, *MARK_TABLES, *STATE_TABLES):
    setattr(Module, _name, _Late(_name))


def _own_dict(module):
    """Give the instance a dict of its own in place of one that shares its keys with the class, and return it.

    CPython 3.11 cannot specialise the access to a shared one once ``__dict__`` was touched: 26 ns, not 12.
    """
    object.__setattr__(module, "__dict__", dict(module.__dict__))
    return module.__dict__


def described(module, children):
    """Return the printed form from a module's name, ``extra_repr`` and one text per child."""
    extra = module.extra_repr()
    name = module._get_name()
    lines = extra.split("\n") if extra else []
    if not children and len(lines) <= 1:
        return f"{name}({extra})"
    body = "".join("\n  " + line.replace("\n", "\n  ") for line in [*lines, *children])
    return f"{name}({body}\n)"


def _type_name(value):
    return type(value).__name__
