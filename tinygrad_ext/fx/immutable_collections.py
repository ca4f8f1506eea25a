"""Lists and dicts that refuse to be changed: arguments of a Node, whose users are counted when they are assigned."""


def _refuse(self, *args, **kwargs):
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation. To change a node's arguments, assign node.args "
        "or node.kwargs a new tuple or dict, or use node.update_arg() and node.update_kwarg()"
    )


def _immutable(base, name, methods):
    members = {method: _refuse for method in methods.split()}
    members["__reduce__"] = lambda self: (globals()[name], (base(self),))
    members["__hash__"] = lambda self: hash(tuple(self.items() if isinstance(self, dict) else self))
    members["__doc__"] = f"A {base.__name__} that cannot be changed."
    return type(name, (base,), members)


immutable_list = _immutable(
    list,
    "immutable_list",
    "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort",
)
immutable_dict = _immutable(
    dict, "immutable_dict", "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update"
)
