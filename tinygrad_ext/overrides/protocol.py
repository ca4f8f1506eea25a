"""`__torch_function__`: who gets a call whose arguments are not plain tensors.

The asking itself is compiled (core/call/overrides.pyx); here stand its switches, and the walk that puts the attributes
and methods of Tensor that are no ops under the protocol.
"""

import types

from tinygrad_ext.core.call import operators, overrides, protocols, subclass, unasked
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.overridable import OverridableMethod, OverridableProperty
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad import methods

# Attributes of Tensor that run without being asked about, and why.
NOT_OVERRIDABLE = {
    "__new__": "makes a tensor: there is none yet",
    "__init__": "fills a tensor that is being made",
    "__init_subclass__": "about classes",
    "__hash__": "identity",
    "__dict__": "the instance's own attributes",
    "__setattr__": "sets those; an attribute of Tensor is asked about itself",
    "__delattr__": "deletes those; an attribute of Tensor is asked about itself",
    "__weakref__": "the instance's own attributes",
    "__doc__": "text",
    "__array_priority__": "a number",
    "__torch_function__": "the protocol itself",
    "__class__": "a class is asked about before an override is looked for",
    "__torch_dispatch__": "the protocol below autograd",
    "__iter__": "ends in dim and unbind, which are asked about",
    "__array_ufunc__": "ends in operators, numpy() and __array_wrap__, which are asked about",
    "as_subclass": "changes who is asked",
    "_make_subclass": "changes who is asked",
    "_make_wrapper_subclass": "changes who is asked",
    "_only_element": "what the conversions to numbers share",
}
_METHODS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    type(methods.register_hook),
)
_ATTRIBUTES = (property, types.GetSetDescriptorType, types.MemberDescriptorType)


class _Switch:
    """A `with` that turns the asking of types and modes off or on in this thread."""

    __slots__ = ("_was",)
    _off = (False, False)

    def __enter__(self):
        self._was = unasked.set_disabled(*self._off)

    def __exit__(self, *exc):
        unasked.set_disabled(*self._was)


class DisableTorchFunctionSubclass(_Switch):
    """`with DisableTorchFunctionSubclass():` argument types are not asked inside; modes are."""

    __slots__ = ()

    def __enter__(self):
        self._was = was = unasked.set_disabled(True, False)
        if was[1]:
            unasked.set_disabled(True, True)


class DisableTorchFunction(_Switch):
    """`with DisableTorchFunction():` neither argument types nor modes are asked inside."""

    __slots__ = ()
    _off = (True, True)


class _EnableTorchFunction(_Switch):
    """`with _EnableTorchFunction():` types and modes are asked inside, whatever was switched off around it."""

    __slots__ = ()


class enable_reentrant_dispatch(_Switch):
    """`with enable_reentrant_dispatch():` types are asked again inside a handler or an op's Python kernel."""

    __slots__ = ("_depth",)

    def __enter__(self):
        super().__enter__()
        self._depth = unasked.set_below(0)

    def __exit__(self, *exc):
        unasked.set_below(self._depth)
        super().__exit__(*exc)


@boundary
def path_of(func):
    """'tinygrad_ext.add', 'tinygrad_ext.Tensor.add', 'tinygrad_ext.Tensor.shape.__get__': how messages name func."""
    owner = getattr(func, "__self__", None)
    if isinstance(owner, OverridableProperty):
        return f"tinygrad_ext.{owner.__qualname__}.{func.__name__}"
    if isinstance(owner, type):
        return f"{owner.__module__}.{owner.__qualname__}.{func.__name__}"
    return f"{getattr(func, '__module__', None) or 'tinygrad_ext'}.{getattr(func, '__qualname__', repr(func))}"


@boundary
def get_default_nowrap_functions():
    """Getters whose result keeps its class although a subclass was asked: a gradient, the base of a view."""
    return {Tensor._base.__get__, Tensor.grad.__get__}


def _cover(name, found):
    """The attribute of Tensor under the protocol; None for what stays as it is."""
    if name in NOT_OVERRIDABLE:
        return None
    if isinstance(found, _ATTRIBUTES):
        return OverridableProperty(found, name)
    if isinstance(found, _METHODS):
        method = OverridableMethod(found, name, module="tinygrad_ext")
        method.converts = name == "new_tensor"  # what becomes of its data, the data is not asked
        return method
    return None


@boundary
def install():
    """Put Tensor under the protocol."""
    known = {}  # the same function under two names stays the same
    for name, found in list(vars(Tensor).items()):
        covered = known.setdefault(id(found), _cover(name, found))
        if covered is not None and name.startswith("__"):
            operators.show(name, covered)
        elif covered is not None:
            setattr(Tensor, name, covered)
    operators.show("__new__", staticmethod(subclass.new))
    protocols.install()
    Tensor.__init_subclass__ = classmethod(operators.inherit)
    unasked.set_nowrap(get_default_nowrap_functions())
    overrides.install(classmethod(unasked.torch_function), path_of)
