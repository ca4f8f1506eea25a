"""Dictionaries and references that know their objects by identity, and let them go.

Tensors compare by elements, so that the standard library's `weakref.WeakKeyDictionary` cannot hold them.
"""

import weakref
from collections.abc import MutableMapping

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


@boundary
class WeakIdRef(weakref.ref):
    """A weak reference that equals another to the same object; once that is gone, only itself."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __call__(self):
        return super().__call__()

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        mine = self()
        if mine is None or not isinstance(other, weakref.ref):
            return self is other
        return mine is other()

    def __ne__(self, other):  # that of weakref.ref compares the objects
        return not self == other


@boundary
class WeakIdKeyDictionary(MutableMapping):
    """A dict by identity of its keys, which it does not keep: an entry goes with its key.

    Args:
        dict: a mapping, or pairs, to begin with. ref_type: the class of the references, a WeakIdRef.
    """

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.data, self.ref_type = {}, ref_type
        if dict is not None:
            self.update(dict)

    def _gone(self):
        """What removes the entry of a key that goes; it does not keep this dictionary."""
        data = weakref.ref(self)

        def remove(reference):
            if (own := data()) is not None:
                own.data.pop(reference, None)

        return remove

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value):
        self.data[self.ref_type(key, self._gone())] = value

    def __delitem__(self, key):
        del self.data[self.ref_type(key)]

    def __contains__(self, key):
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # nothing that a weak reference can be made to
            return False

    def __iter__(self):
        for reference in list(self.data):  # entries may go meanwhile
            key = reference()
            if key is not None:
                yield key

    def __len__(self):
        return len(self.data)

    def keyrefs(self):
        """The references."""
        return list(self.data)

    def copy(self):
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo):
        from copy import deepcopy  # lazy: few copy it

        return type(self)([(key, deepcopy(value, memo)) for key, value in self.items()], self.ref_type)

    def __or__(self, other):
        return type(self)([*self.items(), *dict(other).items()], self.ref_type)

    def __repr__(self):
        return f"<{type(self).__name__} of {len(self)}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


@boundary
class TensorWeakRef:
    """A weak reference to a tensor; called, it gives the tensor, or None."""

    def __init__(self, tensor):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"TensorWeakRef: expected a Tensor, got {type(tensor).__name__}")
        self.ref = WeakIdRef(tensor)

    def __call__(self):
        return self.ref()

    def __eq__(self, other):
        return isinstance(other, TensorWeakRef) and self.ref == other.ref

    def __hash__(self):
        return hash(self.ref)
