"""`with`: grad modes, record_function, objects with __enter__ and __exit__, which are left before what raises; where
an op fails, by whoever runs the graph, see `primitives.contexts`."""

import ast

import tinygrad_ext as tg
from tinygrad_ext.autograd.profiler import record_function
from tinygrad_ext.graph.primitives.objects import class_of
from tinygrad_ext.graph.types import ANY, BOOL, INT, STR

from .compiler import hook, statement
from .expressions import KINDS
from .values import Static, type_of


class Context(Static):
    """What stands in a `with`. Attributes: python, args."""

    kind = "a context manager"

    def __init__(self, python, args=()):
        self.python, self.args = python, args

    def call(self, c, args, kwargs):
        return Context(self.python, [*args, *kwargs.values()])


_MODES = {tg.no_grad: False, tg.enable_grad: True, tg.set_grad_enabled: None, record_function: None,
          tg.inference_mode: False}  # fmt: skip


def _known(c, value, name):
    try:
        return Context(value) if value in _MODES else None
    except TypeError:
        return None


KINDS.insert(0, (type, _known))


@hook
def context(c, manager):
    """(function that enters, function that leaves) a context; entering gives what `as` names."""
    if isinstance(manager, Context):
        return _record(c, manager) if manager.python is record_function else _mode(c, manager)
    if not isinstance(manager, Static):
        cls = class_of(type_of(manager).word)
        if cls is None or not (hasattr(cls, "__enter__") and hasattr(cls, "__exit__")):
            c.fault(
                f"a value of type {type_of(manager)} does not define __enter__ and __exit__ methods: the expression of "
                "a with must return an object that has them"
            )
        made = c.object_attribute(manager, "__enter__"), c.object_attribute(manager, "__exit__")
        if made[0].python.__code__.co_argcount != 1:
            c.fault("__enter__ must have only one argument and one return value")
        _check_exit(c, made[1].python)
        entered = []
        return lambda: _enter_object(c, manager, made[0], entered), lambda: _leave_object(c, entered[0], made[1])
    return c.fault(f"{manager.told()} cannot stand in a with; no_grad(), record_function(...) and objects can")


def _enter_object(c, manager, enter, entered):
    made = enter.call(c, [], {})
    entered.append(c.emit("prim::context_begin", (manager,), INT))
    return made


def _leave_object(c, entered, leave):
    c.effect("prim::context_end", entered)
    leave.call(c, [None] * 3, {})


def _check_exit(c, function):
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    if len(names) != 4:
        c.fault(f"__exit__ must have four arguments: self and three that tell what was raised, not {len(names)}")
    hints = function.__annotations__
    for i, name in enumerate(names[1:], 1):
        if hints.get(name) in (int, float, bool, str, tg.Tensor):
            c.fault(f"argument {i} of __exit__ must have Any type: it is None where nothing was raised")


def _mode(c, manager):
    mode = _MODES[manager.python]
    if mode is None:
        mode = c.value(manager.args[0], BOOL)
    was = []
    return (
        lambda: was.append(c.emit("prim::set_grad_enabled", (mode,), BOOL)),
        lambda: c.emit("prim::set_grad_enabled", (was[0],), BOOL),
    )


def _record(c, manager):
    name = c.value(manager.args[0], STR)
    part = []

    def enter():
        part.append(c.emit("prim::record_begin", (name,), ANY))
        return part[0]

    return enter, lambda: c.effect("prim::record_end", part[0])


# ---- the statement -------------------------------------------------------------------------------------------------


@statement(ast.With)
def _with(c, node):
    _enter(c, node.items, node.body)


def _enter(c, items, body):
    if not items:
        c.statements(body)
        return
    with c.at(items[0].context_expr):
        manager = c.expression(items[0].context_expr)
        enter, leave = c.context(manager)
        entered = enter()
    if items[0].optional_vars is not None:
        c.assign(items[0].optional_vars, entered)
    around, c.leaving = c.leaving, [*c.leaving, leave]
    try:
        _enter(c, items[1:], body)
    finally:
        c.leaving = around
    exited, c.scope.exited = c.scope.exited, None
    if exited != "raise":
        leave()
    c.scope.exited = exited


@hook
def leave_all(c):
    """Leave each `with` around what raises, those of the callers too, the innermost first."""
    around = c.leaving
    for k in reversed(range(len(around))):
        c.leaving = around[:k]  # what leaving raises is inside the outer ones alone
        around[k]()
    c.leaving = around
