"""Statements: assignment, return, if, assert, raise, with, del. Loops stand in loops.py."""

import ast

from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.primitives.objects import word_of
from tinygrad_ext.graph.types import ANY, BOOL, NONE, accepts

from .compiler import hook, statement
from .conversions import as_declared
from .environment import ABSENT, FLAGS, LEFT, RESULT, RETURNED, SKIPPED, NeverReturns, refine
from .errors import AnnotationError, NotSupportedError, misfit
from .types import unify
from .values import DictLiteral, ListLiteral, Static, TupleValue, Unbound, type_of


@hook
def statements(c, nodes):
    """Compile statements in order; those behind one that may leave the block run only where it has not."""
    for i, node in enumerate(nodes):
        if c.scope.exited:
            return
        rest = nodes[i + 1 :]
        if rest and isinstance(node, ast.If):
            joined = _with_rest(node, rest, c.scope)
            if joined is not None:
                c.statement(joined)
                return
        c.frame.at_statement = c.scope
        try:
            c.statement(node)
        except NeverReturns:
            c.scope.exited = "raise"
            return
        if rest and not c.scope.exited:
            flag = left_early(c)
            if flag is not False:
                guarded(c, flag, lambda rest=rest: c.statements(rest))
                return


def left_early(c):
    """Whether control has left this block: False, or a value of the graph."""
    found = False
    for name in FLAGS:
        flag = c.scope.flag(name)
        if isinstance(flag, Value):
            found = flag if found is False else c.emit("prim::or", (found, flag), BOOL)
    return found


def guarded(c, flag, rest):
    """Run the rest where control has not left."""

    def leave():
        c.scope.exited = "jump" if any(c.scope.flag(n) is not False for n in (LEFT, SKIPPED)) else "return"

    def go_on():
        c.scope.clear_flags()
        c.scope.resumed = True
        refine(c, c.scope.narrowed())
        rest()

    c.choose(flag, leave, go_on)


def _with_rest(node, rest, scope):
    """The If with what follows in the branch that goes on, where the other always leaves; else None."""
    body, other = exits(node.body), exits(node.orelse)
    if body == other or "raise" in (body, other):
        return None
    if body:
        return ast.copy_location(ast.If(node.test, node.body, [*node.orelse, _Resume(scope), *rest]), node)
    return ast.copy_location(ast.If(node.test, [*node.body, _Resume(scope), *rest], node.orelse), node)


class _Resume(ast.stmt):
    """What follows stands in the block around, whose names are in this scope."""

    def __init__(self, scope):
        super().__init__()
        self.scope = scope


@statement(_Resume)
def _resume(c, node):
    c.scope.resumed = c.scope is not node.scope


def exits(nodes):
    """Whether statements always leave their block: False, "raise" or "leave"."""
    for node in nodes:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
            return "leave"
        if isinstance(node, ast.Raise):
            return "raise"
        if isinstance(node, ast.If):
            both = exits(node.body), exits(node.orelse)
            if all(both):
                return "leave" if "leave" in both else "raise"
    return False


# ---- assignment ----------------------------------------------------------------------------------------------------


@statement(ast.Assign)
def _assign(c, node):
    operand = c.expression(node.value)
    if len(node.targets) > 1:
        operand = settled(c, operand)
    for target in node.targets:
        c.assign(target, operand)


def settled(c, operand, type=None):
    """The operand as it is kept under a name: a list or dict is made, a tuple stays apart in its items."""
    if isinstance(operand, TupleValue) and type is None:
        return TupleValue([settled(c, v) for v in operand.values], operand.names)
    parted = isinstance(operand, (TupleValue, ListLiteral, DictLiteral))
    if parted and type_of(operand) is None and _only_static(operand):
        return TupleValue(operand.values) if isinstance(operand, ListLiteral) else operand
    if isinstance(operand, (ListLiteral, DictLiteral)) or (type is not None and not _plain_static(operand)):
        return c.value(operand, type)
    return operand


def _only_static(operand):
    return bool(operand.values) and any(isinstance(v, Static) and type_of(v) is None for v in operand.values)


def _plain_static(operand):
    return isinstance(operand, Static) and not isinstance(operand, (TupleValue, ListLiteral, DictLiteral))


@hook
def assign(c, target, operand):
    """Bind a target of an assignment. What is wrong with an attribute or item is told of the whole statement."""
    with c.at(c.nodes[-1] if isinstance(target, (ast.Attribute, ast.Subscript)) and c.nodes else target):
        if isinstance(target, ast.Name):
            _bind(c, target.id, operand)
        elif isinstance(target, (ast.Tuple, ast.List)):
            _unpack(c, target, operand)
        elif isinstance(target, ast.Attribute):
            c.set_attribute(c.expression(target.value), target.attr, operand)
        elif isinstance(target, ast.Subscript):
            c.set_item(target, operand)
        else:
            c.fault(f"cannot assign to {type(target).__name__} in script", kind=NotSupportedError)


def _bind(c, name, operand):
    declared = c.scope.declared_type(name)
    if declared is not None:
        operand = c.as_interface(operand, declared)
    given, outside = type_of(operand), c.scope.outside(name)
    if outside is not ABSENT and not c.frame.ours:
        operand = _of_its_type(c, name, outside, declared or type_of(outside), operand)
    elif declared is not None and not isinstance(operand, Static) and not accepts(declared, given):
        declared = c.scope.declared[name] = None  # in its own block a name may begin anew
    c.scope.bound[name] = settled(c, operand, declared)


def _of_dicts(wanted, given):
    """Which part of a dict's type does not fit, in words."""
    if wanted.word != "Dict" or given.word != "Dict":
        return ""
    part, word = (1, "value") if accepts(wanted.args[0], given.args[0]) else (0, "key")
    return ": " + misfit(f"{word} of {wanted}", wanted.args[part], given.args[part])


def _kind(operand):
    return f"module, {operand.told()}" if operand.told().startswith("the module") else operand.told()


def _of_its_type(c, name, outside, before, operand):
    """The operand for a name of the blocks around, which gets no other type here: behind, it is one or the other."""
    given = type_of(operand)
    if operand is outside:
        return operand
    if before is None or given is None:
        new = f"a value of type {_kind(operand)}" if given is None else f"a value of type {given}"
        c.fault(
            f"Cannot re-assign '{name}' to {new}: around this block it is "
            f"{outside.told() if before is None else f'a value of type {before}'}",
            "Only values of a graph change from one way or turn to another; take a name of its own.",
        )
    if isinstance(operand, (ListLiteral, DictLiteral)) and not operand.values and before.word == given.word:
        return c.value(operand, before)
    if unify(before, given) is None:
        c.fault(
            f"Variable '{name}' previously had type {before} but is now being assigned to a value of type {given}",
            "Give it one type everywhere, an annotation where it is first set, or take another name.",
        )
    return operand


def _unpack(c, target, operand):
    names = target.elts
    given = getattr(c.nodes[-2], "value", None) if len(c.nodes) > 1 else None
    with c.at(given if isinstance(given, ast.expr) else target):
        items = c.unpacked(operand, None if any(isinstance(n, ast.Starred) for n in names) else len(names))
    starred = next((i for i, n in enumerate(names) if isinstance(n, ast.Starred)), None)
    if starred is not None:
        after = len(names) - starred - 1
        if len(items) < len(names) - 1:
            c.fault(f"need at least {len(names) - 1} values to unpack, but there are {len(items)}")
        end = len(items) - after
        items = [*items[:starred], TupleValue(items[starred:end]), *items[end:]]
        names = [n.value if isinstance(n, ast.Starred) else n for n in names]
    for name, item in zip(names, items):
        c.assign(name, item)


@statement(ast.AnnAssign)
def _annotated(c, node):
    type = c.type_of_annotation(node.annotation)
    if isinstance(node.target, ast.Attribute) and c.frame.source.name != "__init__":
        c.fault(
            f"Type annotations on instance attributes must be declared in __init__, not '{c.frame.source.name}'",
            kind=AnnotationError,
        )
    if isinstance(node.target, ast.Attribute) and node.value is not None:
        operand = c.value(c.expression(node.value), type)
        owner = c.expression(node.target.value)
        c.declare_attribute(owner, node.target.attr, type)
        c.set_attribute(owner, node.target.attr, operand)
        return
    if not isinstance(node.target, ast.Name):
        c.fault("an annotation belongs to a name or attribute")
    if c.scope.outside(node.target.id) is not ABSENT and not c.frame.ours:
        c.fault(
            f"Attempting to declare and annotate the type of variable '{node.target.id}' that is already defined in an "
            "outer block",
            "Annotate it where it is first set.",
        )
    c.scope.declared[node.target.id] = type
    if node.value is not None:
        operand = as_declared(c, c.as_interface(c.hinted(node.value, type), type), type)
        given = type_of(operand)
        if not isinstance(operand, Static) and not accepts(type, given):
            c.fault(
                f"Variable '{node.target.id}' is annotated with type {type} but is being assigned to a value of type "
                f"{given}{_of_dicts(type, given)}"
            )
        c.scope.bound[node.target.id] = settled(c, operand, type)


@statement(ast.AugAssign)
def _augmented(c, node):
    target = node.target
    if isinstance(target, ast.Name):
        load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        c.assign(target, c.augment(c.expression(load), node.op, c.expression(node.value)))
    elif isinstance(target, ast.Attribute):
        owner = c.expression(target.value)
        new = c.augment(c.attribute(owner, target.attr), node.op, c.expression(node.value))
        c.set_attribute(owner, target.attr, new)
    else:
        c.augment_item(target, node.op, node.value)


@statement(ast.Delete)
def _delete(c, node):
    for target in node.targets:
        if isinstance(target, ast.Name):
            c.expression(target)
            c.scope.bound[target.id] = Unbound(f"undefined value {target.id}: it was deleted")
        elif isinstance(target, ast.Subscript):
            c.delete_item(target)
        else:
            c.fault("del takes a name, or an item of a list or dict")


# ---- leaving -------------------------------------------------------------------------------------------------------


@statement(ast.Return)
def _return(c, node):
    frame = c.frame
    told = frame.returns if isinstance(node.value, ast.IfExp) else None
    operand = None if node.value is None else c.expression(node.value) if told is None else c.hinted(node.value, told)
    c.check_leaves(operand)
    if frame.returns is ANY:
        operand = c.emit("prim::cast", (c.value(operand),), ANY)
    elif frame.returns is not None:
        if frame.returns is NONE and type_of(operand) is not NONE:
            c.fault(f"the function is annotated to return None, but returns a value of type {type_of(operand)}")
        operand = c.value(operand, frame.returns, "a value to return")
        if frame.returns.word == "Union" and type_of(operand) is not frame.returns:
            operand = c.emit("prim::cast", (operand,), frame.returns)  # other ways out may give another of its types
    elif c.scope is not frame.root or (len(c.frames) == 1 and isinstance(operand, Static) and operand.as_text()):
        operand = c.value(operand)
    given = type_of(operand)
    if frame.returned is not None and given is not None:
        together = unify(frame.returned, given)
        if together is None:
            c.fault(
                f"Previous return statement returned a value of type {frame.returned} but this return statement "
                f"returns a value of type {given}",
                "Annotate what the function returns, as Union[...] where it is either.",
            )
        given = together
    frame.returned = given
    c.scope.bound[RESULT], c.scope.bound[RETURNED] = operand, True
    c.scope.exited = "return"


@statement(ast.Break)
def _break(c, node):
    _in_loop(c, "break")
    c.scope.bound[LEFT] = True
    c.scope.exited = "jump"


@statement(ast.Continue)
def _continue(c, node):
    _in_loop(c, "continue")
    c.scope.bound[SKIPPED] = True
    c.scope.exited = "jump"


def _in_loop(c, word):
    if not c.loops:
        c.fault(f"'{word}' outside of a loop")


@statement(ast.Raise)
def _raise(c, node):
    if node.exc is None:
        c.fault("raise needs an exception in script: there is none to raise again", kind=NotSupportedError)
    c.raise_(node.exc)
    c.scope.exited = "raise"


@hook
def raise_(c, node):
    """Raise the exception that an expression makes; its class is known while compiling."""
    args = []
    if isinstance(node, ast.Call):
        cls = c.expression(node.func)
        args = [c.value(c.expression(a)) for a in node.args]
    else:
        cls = c.expression(node)
    cls = getattr(cls, "cls", None)
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        told = "exceptions are raised by class: raise ValueError('...'); exceptions must derive from BaseException"
        c.fault(told, kind=NotSupportedError)
    c.leave_all()
    c.effect("prim::raise", cls.__name__ if cls.__module__ == "builtins" else word_of(cls), *args)


@statement(ast.Assert)
def _assert(c, node):
    condition = c.condition(node.test)

    def fail():
        args = [] if node.msg is None else [c.value(c.expression(node.msg))]
        c.leave_all()
        c.effect("prim::raise", "AssertionError", *args)
        c.scope.exited = "raise"

    c.branch(condition, lambda: None, fail)


# ---- the rest ------------------------------------------------------------------------------------------------------


@statement(ast.If)
def _if(c, node):
    condition = c.condition(node.test)
    c.branch(condition, lambda: c.statements(node.body), lambda: c.statements(node.orelse))


@statement(ast.Expr)
def _expr(c, node):
    if not isinstance(node.value, ast.Constant):
        made = c.expression(node.value)
        if made is not None and made is c.unpromised and made.node is c.block.nodes[-1]:
            c.block.nodes.pop()  # the check of what a Python function gives, which said nothing and nobody reads


@statement(ast.Pass)
def _pass(c, node):
    pass
