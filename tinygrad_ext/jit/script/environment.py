"""Names: what they stand for in a block, and how an If brings two ways together.

A Scope belongs to a block of the graph. Names that begin with "$" are the compiler's own: whether the function has
returned, the loop was left or the turn cut short, and the value to return. They are merged like the others, so an early
return is nothing but a name.
"""

from tinygrad_ext.graph.ir import Value
from tinygrad_ext.graph.types import BOOL, INT, accepts

from .types import unify, union
from .values import Static, Unbound, is_constant, type_of

RETURNED, LEFT, SKIPPED, RESULT = "$returned", "$left", "$skipped", "$result"
FLAGS = (RETURNED, LEFT, SKIPPED)
ABSENT = Unbound("it was never set")


class NeverReturns(Exception):
    """A call in the statement being compiled always raises: nothing behind it runs."""


class Scope:
    """Names of a block.

    Attributes: bound (name -> operand), declared (name -> type of its annotation), exited: None, or why control never
    reaches the end: "raise", "return" or "jump"; own: names that hide those outside, as the target of a comprehension;
    resumed: what is compiled into it stands in the block around, behind an early return.
    """

    def __init__(self, parent=None):
        self.parent, self.bound, self.declared, self.exited = parent, {}, {}, None
        self.own, self.resumed = set(), False
        self.narrow = {}  # name -> (operand, its type where control has not left by a break or continue)
        self.shown = {}  # value of an attribute -> its type, as a condition has shown it

    def find(self, name):
        """The operand of a name, or ABSENT."""
        scope = self
        while scope is not None:
            if name in scope.bound:
                return scope.bound[name]
            scope = scope.parent
        return ABSENT

    def declared_type(self, name):
        """The type that an annotation gave to a name, or None."""
        scope = self
        while scope is not None:
            if name in scope.declared or name in scope.own:
                return scope.declared.get(name)
            scope = scope.parent
        return None

    def outside(self, name):
        """The operand that a name has in the blocks around the statement, or ABSENT."""
        scope = self
        while scope.resumed:
            scope = scope.parent
        if scope.parent is None or name in self.own:
            return ABSENT
        found = scope.parent.find(name)
        return ABSENT if isinstance(found, Unbound) else found

    def live_type(self, name, operand):
        """The type that an operand of a name has where control goes on."""
        scope = self
        while scope is not None:
            if name in scope.narrow:
                known, type = scope.narrow[name]
                return type if known is operand else type_of(operand)
            scope = scope.parent
        return type_of(operand)

    def shown_type(self, operand):
        """The type that conditions have shown a value of an attribute to have, else its own."""
        scope = self
        while scope is not None:
            if operand in scope.shown:
                return scope.shown[operand]
            scope = scope.parent
        return operand.type

    def narrowed(self):
        """{name: type} of names whose operands have a narrower type where control goes on."""
        found, scope = {}, self
        while scope is not None:
            for name, (operand, type) in scope.narrow.items():
                if name not in found and self.find(name) is operand:
                    found[name] = type
            scope = scope.parent
        return found

    def flag(self, name):
        found = self.find(name)
        return False if found is ABSENT else found

    def clear_flags(self):
        for name in FLAGS:
            self.bound[name] = False


class Branch:
    """One way of an If: its block, the names that it bound, the attributes of modules that it set."""

    def __init__(self, block, scope, fields):
        self.block, self.scope, self.fields = block, scope, fields

    def give(self, c, operand, type):
        """The operand as something that the block can yield."""
        with c.inside(self.block, self.scope, self.fields):
            if isinstance(operand, Unbound):
                return c.emit("prim::undefined", (), type)
            return c.value(operand, type)


def merge(c, node, branches):
    """Outputs of an If node, and what names stand for behind it, from its two branches."""
    dead = [branch.scope.exited == "raise" for branch in branches]
    for name in dict.fromkeys([*branches[0].scope.bound, *branches[1].scope.bound]):
        found = [branch.scope.find(name) for branch in branches]
        if name == RESULT:
            merged = _merge_result(c, node, found, branches, dead)
        elif name in FLAGS:
            merged = _merge_flag(c, node, found, branches, dead)
        else:
            merged = _merge_name(c, node, name, found, branches)
        if merged is not ABSENT:
            c.scope.bound[name] = merged
    for key in dict.fromkeys([*branches[0].fields.bound, *branches[1].fields.bound]):
        found = [branch.fields.find(key) for branch in branches]
        c.fields.bound[key] = _merge_name(c, node, c.field_name(key), found, branches, leave=False)
    exits = [branch.scope.exited for branch in branches]
    _merge_shown(c, [branch.scope.shown for branch, e in zip(branches, exits) if e is None])
    if None not in exits:
        c.scope.exited = "jump" if "jump" in exits else "return" if "return" in exits else "raise"


def _merge_shown(c, going):
    """What conditions have shown of attributes on all ways that go on holds behind them."""
    for operand in going[0] if going else ():
        if all(operand in shown for shown in going):
            c.scope.shown[operand] = union([shown[operand] for shown in going])


def _merge_flag(c, node, found, branches, dead):
    values = [False if f is ABSENT else f for f in found]
    if dead == [True, True]:
        return False
    if True in dead:
        values[dead.index(True)] = values[dead.index(False)]
        if not isinstance(values[0], Value):
            return values[0]
        values[dead.index(True)] = False
    if not any(isinstance(v, Value) for v in values) and values[0] == values[1]:
        return values[0]
    return c.output(node, branches, values, BOOL)


def _merge_result(c, node, found, branches, dead):
    values = [ABSENT if gone else f for f, gone in zip(found, dead)]
    present = [v for v in values if v is not ABSENT]
    if not present:
        return ABSENT
    if all(p is None for p in present) or (len(present) == 2 and present[0] is present[1]):
        return present[0]
    type = type_of(present[0])
    for operand in present[1:]:
        type = unify(type, type_of(operand))
    return c.output(node, branches, values, type)


def _merge_name(c, node, name, values, branches, leave=True):
    """leave: a branch that has raised or returned does not count."""
    exits = [branch.scope.exited for branch in branches]
    live = [e not in ("raise", "return") for e in exits] if leave else [e != "raise" for e in exits]
    if live[0] != live[1]:
        values[live.index(False)] = ABSENT
    present = [v for v in values if v is not ABSENT]
    if not present:
        return ABSENT
    if len(present) == 1 and all(live) and "jump" not in exits:
        return Unbound(f"{name} is not defined in the {'true' if values[0] is ABSENT else 'false'} branch")
    if any(isinstance(p, Unbound) for p in present):
        return next(p for p in present if isinstance(p, Unbound))
    if len(present) == 2 and _same(*present):
        return present[0]
    if any(type_of(p) is None for p in present):
        if len(present) == 1:
            return present[0]
        if len(present) == 2 and c.are_modules(present):
            return c.as_interface(c.choice(present, c.output(node, branches, [0, 1], INT)), c.scope.declared_type(name))
        return Unbound(f"{name} is one of two objects that are no values of a graph; let each branch use its own")
    if len(present) == 1 and is_constant(present[0]):
        return present[0]
    told = [branch.scope.declared.get(name) for branch in branches]
    if told[0] is not None and told[0] is told[1]:
        c.scope.declared.setdefault(name, told[0])
    declared = c.scope.declared_type(name) or type_of(c.scope.find(name))
    type = _merged_type(declared, [type_of(p) for p in present])
    if type is None:
        return Unbound(_mismatch(name, [type_of(p) for p in present], branches))
    made = c.output(node, branches, values, type)
    going = [b.scope.live_type(name, v) for b, v, e in zip(branches, values, exits) if e is None and v is not ABSENT]
    live = _merged_type(declared, going) if going else None
    if live is not None and live is not type:
        c.scope.narrow[name] = made, live
    return made


def _merged_type(declared, types):
    type = types[0]
    for other in types[1:]:
        type = unify(type, other)
    if type is None and declared is not None and all(accepts(declared, t) for t in types):
        return declared
    return type


def _same(a, b):
    return a is b or (is_constant(a) and is_constant(b) and type(a) is type(b) and repr(a) == repr(b))


def _mismatch(name, types, branches):
    before = branches[0].scope.parent.find(name)
    if not isinstance(before, Static):
        new = types[0] if types[0] is not type_of(before) else types[1]
        had = type_of(before)
        return f"Variable '{name}' previously had type {had} but is now being assigned to a value of type {new}"
    return f"Type mismatch: {name} is set to type {types[0]} in the true branch and type {types[1]} in the false branch"


def refine(c, refinements):
    """Let names, and values of attributes, have the types that a condition has shown in the current scope."""
    for name, type in refinements.items():
        if isinstance(name, Value):
            c.scope.shown[name] = type
            continue
        found = c.scope.find(name)
        if isinstance(found, Value) and found.type is not type:
            c.scope.bound[name] = c.emit("prim::cast", (found,), type) if type.word != "NoneType" else None
