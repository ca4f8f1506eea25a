"""Loops: `while`, `for` over what has a length, `for` over what is known while compiling, which is unrolled."""

import ast
import contextlib

from tinygrad_ext.graph.ir import Block
from tinygrad_ext.graph.types import BOOL, INT

from .compiler import hook, statement
from .environment import ABSENT, LEFT, RESULT, RETURNED, SKIPPED, Scope, refine
from .errors import NotSupportedError
from .iteration import assigned
from .statements import guarded, left_early
from .types import unify
from .values import Static, Unbound, type_of

# ---- one loop node -------------------------------------------------------------------------------------------------


class _Widen(Exception):
    """The loop has to be compiled again: a name has a wider type, or a field is carried too."""


def loop(c, count, names, body, test=None, endless=False):
    """A Loop node.

    Args:
        count: how many turns at most, or None.
        names: what the body may bind.
        body: function(index) that compiles it.
        test: function() -> Condition of a `while`.
        endless: the test is always true, so that nothing follows but by a break.
    """
    types, fields = {}, []
    start, bound = len(c.block.nodes), dict(c.fields.bound)
    while True:
        first = test() if test is not None else None
        try:
            _attempt(c, count, names, body, test, first, types, fields, endless)
            return
        except _Widen:
            del c.block.nodes[start:]
            c.fields.bound.update(bound)
        for name, type in types.items():
            if type_of(c.scope.find(name)) is not type:
                c.scope.bound[name] = c.emit("prim::cast", (c.value(c.scope.find(name)),), type)
                start = len(c.block.nodes)


def _attempt(c, count, names, body, test, first, types, fields, endless):
    block, scope, inner_fields = Block(), Scope(c.scope), Scope(c.fields)
    index = c.graph.value(INT)
    carried = [_Carried(c, name, types) for name in names if _is_carried(c.scope.find(name))]
    kept = [_CarriedField(c, key) for key in fields]
    for each in carried:
        scope.bound[each.name] = each.inside
    for each in kept:
        inner_fields.bound[each.key] = each.inside
    scope.clear_flags()
    with c.inside(block, scope, inner_fields), _in_loop(c):
        if first is not None:
            refine(c, first.true)
        body(index)
        go_on = _go_on(c, test)
        ends = [each.end(c, types) for each in carried] + [each.end(c) for each in kept]
        unseen = [key for key in inner_fields.bound if key not in fields and key in c.accessors]
        if unseen:
            fields.extend(unseen)
            raise _Widen
        extra = _result(c, scope)
    starts = [each.start for each in (*carried, *kept)]
    for type, inside, end in extra:
        starts.append(False if type is BOOL else c.emit("prim::undefined", (), type))
        carried_value = c.graph.value(type)
        block.inputs.append(carried_value)
        ends.append(end if inside else carried_value)
    block.inputs = [index, *(each.inside for each in (*carried, *kept)), *block.inputs]
    block.outputs = [go_on, *ends]
    start = True if first is None else first.operand
    node = c.node("prim::Loop", (count, start, *starts), [v.type for v in block.inputs[1:]], [block])
    _behind(c, node.outputs, carried, kept, extra, scope)
    if endless and scope.flag(LEFT) is False:
        c.scope.exited = "return"


def _behind(c, outputs, carried, kept, extra, scope):
    outputs = list(outputs)
    for each in carried:
        c.scope.bound[each.name] = outputs.pop(0)
    for each in kept:
        c.fields.bound[each.key] = outputs.pop(0)
    if extra:
        c.scope.bound[RETURNED] = outputs.pop(0)
        c.scope.bound[RESULT] = outputs.pop(0) if outputs else None
    for name in scope.bound:
        if c.scope.find(name) is ABSENT and not name.startswith("$"):
            c.scope.bound[name] = Unbound(f"{name} is not defined where the loop makes no turn; set it before the loop")


@contextlib.contextmanager
def _in_loop(c):
    c.loops += 1
    try:
        yield
    finally:
        c.loops -= 1


def _is_carried(operand):
    return not (isinstance(operand, Unbound) or (isinstance(operand, Static) and type_of(operand) is None))


class _Carried:
    """A name that goes from turn to turn."""

    def __init__(self, c, name, types):
        operand = c.scope.find(name)
        self.name, self.type = name, types.get(name) or type_of(operand)
        self.start = c.value(operand, self.type)
        self.inside = c.graph.value(self.type, name=name)

    def end(self, c, types):
        if c.scope.exited in ("raise", "return"):
            return self.inside
        operand = c.scope.find(self.name)
        given = type_of(operand)
        if isinstance(operand, Unbound) or given is None:
            c.fault(operand.reason if isinstance(operand, Unbound) else f"{self.name} becomes no value of a graph")
        wider = unify(self.type, given)
        if wider is self.type:
            return c.value(operand, self.type)
        declared = c.scope.declared_type(self.name)
        if wider is None or (declared is not None and unify(declared, wider) is not declared):
            c.fault(
                f"Variable '{self.name}' previously had type {self.type} but is now being assigned to a value of type "
                f"{given}: a loop keeps the type of what it carries",
                "Give it that type before the loop.",
            )
        types[self.name] = wider
        raise _Widen


class _CarriedField:
    def __init__(self, c, key):
        self.key = key
        operand = c.fields.find(key)
        self.start = c.value(operand)
        self.inside = c.graph.value(c.accessors[key][0].value.type)

    def end(self, c):
        return c.value(c.fields.find(self.key), self.inside.type)


def _result(c, scope):
    """What a return inside of the loop carries out: [(type, whether this turn gives it, value)]."""
    returned = scope.flag(RETURNED)
    if returned is False:
        return []
    found = [(BOOL, True, c.value(returned))]
    result = scope.find(RESULT)
    if result is not ABSENT and result is not None:
        type = type_of(result)
        found.append((type, True, c.value(result, type)))
    return found


def _go_on(c, test):
    """Whether there is another turn, computed at the end of one."""
    scope = c.scope
    if scope.exited in ("raise", "return"):
        return False
    exited, scope.exited = scope.exited, None
    skipped = scope.bound.pop(SKIPPED, None)
    flag = scope.flag(LEFT) is True or left_early(c)
    if flag is True:
        answer = False
    elif test is None:
        answer = True if flag is False else c.emit("prim::not", (flag,), BOOL)
    elif flag is False:
        answer = c.value(test().operand)
    else:
        answer = c.choose(flag, lambda: False, lambda: c.value(test().operand), result=True)
    scope.bound[SKIPPED] = skipped
    scope.exited = exited
    return answer


# ---- statements ----------------------------------------------------------------------------------------------------


@statement(ast.While)
def _while(c, node):
    _no_else(c, node)
    loop(
        c,
        None,
        assigned([*node.body, node.test]),
        lambda index: c.statements(node.body),
        lambda: c.condition(node.test),
        endless=isinstance(node.test, ast.Constant) and bool(node.test.value),
    )


@statement(ast.For)
def _for(c, node):
    _no_else(c, node)
    names = assigned([node.target, *node.body])

    def body(item):
        c.assign(node.target, item)
        c.statements(node.body)

    c.for_each(c.expression(node.iter), names, body)


def _no_else(c, node):
    if node.orelse:
        kind = "for" if isinstance(node, ast.For) else "while"
        told = f"else branches of {kind} loops aren't supported in script"
        c.fault(told, kind=NotSupportedError, node=node.orelse[0])


@hook
def for_each(c, operand, names, body):
    """Compile body(item) for each item of an operand."""
    items = operand.items(c) if isinstance(operand, Static) else None
    if items is not None:
        _unroll(c, list(items), body)
        return
    iteration = c.iteration(operand)
    loop(c, iteration.length(c), names, lambda index: body(iteration.item(c, index)))


def _unroll(c, items, body):
    with _in_loop(c):
        _turns(c, items, body)
    if c.scope.exited == "jump":
        c.scope.exited = None
    c.scope.bound[LEFT] = c.scope.bound[SKIPPED] = False


def _turns(c, items, body):
    for i, item in enumerate(items):
        body(item)
        if c.scope.exited == "jump" and c.scope.flag(LEFT) is not True:
            c.scope.exited = None  # the turn was cut short; what may have left the loop says so by its flag
        c.scope.bound[SKIPPED] = False
        if c.scope.exited:
            return
        flag = left_early(c)
        if flag is not False:
            guarded(c, flag, lambda rest=items[i + 1 :]: _turns(c, rest, body))
            return
