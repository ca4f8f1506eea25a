"""`Node`: one step of an fx graph, and what maps over its arguments.

A node's place is between two others of a ring that begins and ends at the graph's root node.
"""

import builtins
import operator
import typing

from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.overrides import is_tensor_method_or_property, path_of
from tinygrad_ext.registry.op_namespace import OpOverload, OutOverload

from .immutable_collections import immutable_dict, immutable_list
from .normalize import normalized

OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_effects = set()  # functions that are done for what they do


def has_side_effect(fn):
    """Note that calls of a function are kept by `eliminate_dead_code`; returns the function."""
    _effects.add(fn)
    return fn


def _is_random(function):
    ops = getattr(function, "candidates", ())
    return any("random" in (op.record.tags or "").split() for op in ops)


def _writes(function):
    """Whether a function is an op that writes to an argument: its inplace form, that with out=, or what declares so."""
    ops = getattr(function, "candidates", ())
    if not ops or not isinstance(function, OpOverload):
        return False
    schema, name = ops[0].schema, function.__name__
    is_inplace = name.endswith("_") and name != schema.name
    return is_inplace or isinstance(function, OutOverload) or any(a.is_write for a in schema.args)


def map_aggregate(a, fn):
    """a with fn applied to what stands in its tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(x, fn) for key, x in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a, fn):
    """a with fn applied to its Nodes."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def qualified_name(function):
    """'operator.add', 'tinygrad_ext.relu', 'module.name': what a function is called in text."""
    if getattr(builtins, getattr(function, "__name__", ""), None) is function:
        return f"builtins.{function.__name__}"
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
    if getattr(operator, name, None) is function:
        return f"operator.{name}"
    module = getattr(function, "__module__", None) or "builtins"
    path = path_of(function) if module.startswith("tinygrad_ext") and not is_tensor_method_or_property(function) else ""
    if path:
        return path if path.startswith("tinygrad_ext.") else f"tinygrad_ext.{path}"
    return f"{module}.{name}"


class Node:
    """One step: what is called, with which arguments.

    Attributes:
        graph, name: where it stands, and its name there, which no other node has.
        op: "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        target: a function for call_function, else a text: the method, the path of module or attribute, the argument.
        args, kwargs: Nodes and plain values in tuples, lists, dicts and slices. Assigning them keeps `users` right.
        users: dict whose keys are the nodes that use this one.
        type: annotation of its value, or None. meta: a dict for whoever wants to note something.
        next, prev: its neighbours.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in OPS:
            raise AssertionError(f"Node '{name}': op {op!r} is not one of {', '.join(OPS)}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node '{name}' target {target!r} has type {type(target).__name__} but a Callable is expected"
            )
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(f"Node '{name}' target {target!r} has type {type(target).__name__} but a str is expected")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users, self._inputs, self.meta = {}, {}, {}
        self._prev = self._next = self
        self._erased = False
        self._args, self._kwargs = (), immutable_dict()
        self._assign(args, kwargs)

    # ---- arguments ------------------------------------------------------------------------------------------------

    def _assign(self, args, kwargs):
        def use(node):
            self._inputs[node] = None
            node.users[self] = None
            return node

        for node in self._inputs:
            node.users.pop(self, None)
        self._inputs = {}
        self._args, self._kwargs = map_arg(tuple(args), use), map_arg(dict(kwargs), use)

    @property
    def args(self):
        return self._args

    @args.setter
    def args(self, args):
        self._assign(args, self._kwargs)

    @property
    def kwargs(self):
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs):
        self._assign(self._args, kwargs)

    @property
    def all_input_nodes(self):
        """The Nodes among its arguments, once each, in order."""
        return list(self._inputs)

    def update_arg(self, idx, arg):
        """Put another argument at a position."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        """Put an argument before a position."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key, arg):
        """Set an argument by its name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input, new_input):
        """Use another node where this one uses `old_input`."""
        swap = lambda n: new_input if n is old_input else n
        self._assign(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Use another node wherever this one is used; returns the users that were changed.

        delete_user_cb(user) says whether a user is changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already "
                    "has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # ---- place ----------------------------------------------------------------------------------------------------

    @property
    def next(self):
        return self._next

    @property
    def prev(self):
        return self._prev

    def prepend(self, x):
        """Move x right before this node."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._leave()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x):
        """Move x right after this node."""
        self._next.prepend(x)

    def _leave(self):
        self._prev._next, self._next._prev = self._next, self._prev

    # ---- telling --------------------------------------------------------------------------------------------------

    @property
    def stack_trace(self):
        """Where the program called it, as far as the tracer recorded that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    def normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """The arguments as the target declares them, defaults included: a named tuple (args, kwargs).

        All of them are in kwargs where that is asked. None where nobody knows what the target takes. root: the Module
        in which the paths of modules are.
        """
        if self.op not in ("call_function", "call_module"):
            return None
        target = self.target if self.op == "call_function" else root.get_submodule(self.target).forward
        return normalized(target, self.args, dict(self.kwargs), normalize_to_only_use_kwargs)

    def is_impure(self, impure_random=True):
        """Whether it stays where nobody uses it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            target = self.target
            return target in _effects or _writes(target) or (impure_random and _is_random(target))
        if self.op == "call_module" and self.graph.owning_module is not None:
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        return False

    def _pretty_target(self):
        return self.target if isinstance(self.target, str) else qualified_name(self.target)

    def format_node(self, placeholder_names=None, maybe_return_typename=None):
        """The node as a line; the lists, where given, take names of placeholders and the type that is returned."""
        annotation = f"{type_name(self.type)} " if self.type is not None else ""
        count = f"[num_users={len(self.users)}]"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target)
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {annotation}{count} = placeholder[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : {annotation}{count} = get_attr[target={self._pretty_target()}]"
        if self.op == "output":
            if self.type is not None and maybe_return_typename is not None:
                maybe_return_typename.append(f" -> {type_name(self.type)}")
            return f"return {self.args[0]}"
        return (
            f"%{self.name} : {annotation}{count} = {self.op}[target={self._pretty_target()}]"
            f"(args = {told(self.args)}, kwargs = {told(self.kwargs)})"
        )

    def __repr__(self):
        return self.name

    def __lt__(self, other):
        """Whether it stands before another node of its graph."""
        node = self._next
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False


def type_name(annotation):
    """An annotation as text: `float`, `tinygrad_ext.Tensor`, `typing.Optional[int]`."""
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        if annotation.__module__ == "builtins":
            return annotation.__name__
        return "tinygrad_ext.Tensor" if annotation is Tensor else f"{annotation.__module__}.{annotation.__qualname__}"
    return repr(annotation)


def told(a):
    """Arguments as text with % before names of nodes."""
    if isinstance(a, tuple):
        return f"({', '.join(map(told, a))}{',' * (len(a) == 1)})"
    if isinstance(a, list):
        return f"[{', '.join(map(told, a))}]"
    if isinstance(a, dict):
        return f"{{{', '.join(f'{key}: {told(value)}' for key, value in a.items())}}}"
    return f"%{a}" if isinstance(a, Node) else str(a)


Argument = typing.Any  # what a Node takes: Nodes, numbers, texts, and tuples, lists, dicts and slices of them
