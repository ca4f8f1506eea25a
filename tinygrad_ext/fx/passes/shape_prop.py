"""`ShapeProp`: runs a GraphModule and notes at each node what its result is like."""

from collections import namedtuple

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.fx.immutable_collections import immutable_dict, immutable_list
from tinygrad_ext.fx.interpreter import Interpreter

TensorMetadata = namedtuple("TensorMetadata", "shape dtype requires_grad stride")


class ShapeProp(Interpreter):
    """An Interpreter after whose `propagate(*args)` nodes have `meta["tensor_meta"]` and `meta["type"]`."""

    def run_node(self, n):
        """Run a node, and note its result."""
        result = super().run_node(n)
        told = _told(result)
        if told is not None:
            n.meta["tensor_meta"] = told
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run the module with arguments; its result."""
        return self.run(*args)


def _told(a):
    """TensorMetadata in the place of tensors, None for what has none."""
    if isinstance(a, Tensor):
        return TensorMetadata(a.shape, a.dtype, a.requires_grad, a.stride())
    if isinstance(a, (tuple, list)):
        parts = [_told(part) for part in a]
        return None if all(p is None for p in parts) else tuple(parts) if type(a) is tuple else immutable_list(parts)
    if isinstance(a, dict):
        parts = {key: _told(part) for key, part in a.items()}
        return None if all(p is None for p in parts.values()) else immutable_dict(parts)
    return None
