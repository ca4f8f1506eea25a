"""Which nodes a backend takes: what partitioners ask."""

from .tools_common import CALLABLE_NODE_OPS, get_node_target


class OperatorSupportBase:
    """Says of a node whether it is supported: derive from it and write `is_node_supported`."""

    def is_node_supported(self, submodules, node):
        """Whether a node is supported. submodules: dict of the module's `named_modules()`."""
        raise NotImplementedError(f"{type(self).__name__} does not define is_node_supported(self, submodules, node)")


class OperatorSupport(OperatorSupportBase):
    """Support by a table.

    Args:
        support_dict: what a node calls (see get_node_target) -> None for any arguments, or a tuple of which the first
            part is a sequence, for each argument the dtypes that it may have, and the second a dict of those by name.
            Dtypes are known where `ShapeProp` noted them.
    """

    def __init__(self, support_dict=None):
        self._support_dict = dict(support_dict or {})

    def is_node_supported(self, submodules, node):
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        allowed = self._support_dict[target]
        if allowed is None:
            return True
        positional, named = allowed
        if any(i < len(node.args) and _dtype(node.args[i]) not in kinds for i, kinds in enumerate(positional)):
            return False
        return all(name not in node.kwargs or _dtype(node.kwargs[name]) in kinds for name, kinds in named.items())


def _dtype(a):
    """The dtype that is noted of an argument, or None."""
    return getattr(getattr(a, "meta", {}).get("tensor_meta"), "dtype", None)


class _By(OperatorSupportBase):
    def __init__(self, function):
        self.is_node_supported = function


def create_op_support(is_node_supported):
    """An OperatorSupport of a function of (submodules, node)."""
    return _By(is_node_supported)


def chain(*op_support):
    """Supported is what all of these support."""
    return _By(lambda submodules, node: all(x.is_node_supported(submodules, node) for x in op_support))


def any_chain(*op_support):
    """Supported is what one of these supports."""
    return _By(lambda submodules, node: any(x.is_node_supported(submodules, node) for x in op_support))


class OpSupports:
    """Conditions that are often asked, for `chain`."""

    @classmethod
    def decline_if_input_dtype(cls, dtype):
        """Not supported is a node with an argument of a dtype. RuntimeError where ShapeProp has not been there."""

        def supported(submodules, node):
            for used in node.all_input_nodes:
                if used.op in ("placeholder", "get_attr", *CALLABLE_NODE_OPS) and "tensor_meta" not in used.meta:
                    if "type" in used.meta:  # what is no tensor
                        continue
                    raise RuntimeError(f"nothing is known of the dtype of {used}: run ShapeProp over the module first")
                if _dtype(used) == dtype:
                    return False
            return True

        return _By(supported)

    @classmethod
    def decline_if_node_in_names(cls, disallow_set):
        """Not supported are nodes of these names."""
        return _By(lambda submodules, node: node.name not in disallow_set)
