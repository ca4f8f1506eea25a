"""Lists, dicts and objects that only the graph knows: what changes one gives the changed one instead.

A graph fresh from source changes objects where the program does. An object that the graph made itself, and that nobody
else holds while it is changed, needs no effect for that: `prim::list.append(%l, %x)` becomes
`%m = prim::list.appended(%l, %x)`, and whatever read %l behind it reads %m, through If and Loop too. The new form takes
its argument over (see `primitives.containers`): nobody reads that afterwards, so nothing is copied.

What may be held elsewhere while it is changed stays as it is, and with it the whole graph: an argument's list, an
attribute of a module, a list that was put into another before it was changed.
"""

from .. import primitives
from ..check import has_effect
from ..ir import Node, Value, replaced, values_in
from .base import Pass, blocks, replace

# what gives an object that nobody else has
_FRESH = {
    f"prim::{word}"
    for word in (
        "list", "dict", "to_list", "list.copy", "dict.copy", "dict.from_items", "sorted", "reversed", "concat",
        "repeat", "slice", "dict.keys", "dict.values", "dict.items", "shape", "str.split", "new",
    )
}  # fmt: skip
# what only looks at the objects that it is given, and keeps none of them
_READERS = {
    f"prim::{word}"
    for word in (
        "len", "getitem", "contains", "slice", "concat", "repeat", "min_of", "max_of", "sum_of", "sorted", "reversed",
        "to_list", "any_of", "all_of", "unpack", "unpack_list", "list.index", "list.count", "list.copy", "dict.keys",
        "dict.values", "dict.items", "dict.get", "dict.copy", "dict.from_items", "eq", "ne", "lt", "le", "gt", "ge",
        "str", "str.join", "format", "percent", "print", "getattr", "bool", "not", "isinstance", "is", "isnot",
    )
}  # fmt: skip


class Functional(Pass):
    """Takes effects on local objects away. Leaves a graph as it is where one effect would stay."""

    def run(self, graph):
        if graph.effects:
            _without_invariants(graph)
            roots = _Census(graph).roots()
            if roots is not None:
                _rewrite(graph.block, roots, {}, graph)
                graph.effects = False
        return graph


def _without_invariants(graph):
    """Outputs of If and Loop that are the same on all ways are what they are."""
    mapping = {}
    for block in blocks(graph):
        for node in block.nodes:
            if node.op == "prim::If":
                _of_if(node, mapping)
            elif node.op == "prim::Loop":
                _of_loop(node, mapping)
    replace(graph, mapping)


def _of_if(node, mapping):
    rows = list(zip(node.outputs, *(b.outputs for b in node.blocks)))
    same = [a is b and isinstance(a, Value) and a.type is out.type for out, a, b in rows]
    mapping.update((out, a) for (out, a, _), gone in zip(rows, same) if gone)
    node.outputs = tuple([out for (out, _, _), gone in zip(rows, same) if not gone])
    for block in node.blocks:
        block.outputs = [a for a, gone in zip(block.outputs, same) if not gone]


def _of_loop(node, mapping):
    (block,) = node.blocks
    count, goes_on, *starts = node.args
    rows = list(zip(starts, block.inputs[1:], block.outputs[1:], node.outputs))
    kept = [not (end is inside and isinstance(start, Value)) for start, inside, end, _ in rows]
    for (start, inside, _, out), stays in zip(rows, kept):
        if not stays:
            mapping[inside] = mapping[out] = start
    rows = [row for row, stays in zip(rows, kept) if stays]
    node.args = (count, goes_on, *(row[0] for row in rows))
    block.inputs = [block.inputs[0], *(row[1] for row in rows)]
    block.outputs = [block.outputs[0], *(row[2] for row in rows)]
    node.outputs = tuple([row[3] for row in rows])


class _Census:
    """Where each object is made, changed and shared, in the order of the program."""

    def __init__(self, graph):
        self.graph, self.now, self.loops = graph, 0, ()
        self.made, self.writes, self.shares = {}, {}, {}  # id of a Value -> (time, loops around), the last two lists
        self.stays = False

    def roots(self):
        """{id of the Value of each object that is changed: it}, or None: an effect stays."""
        self._block(self.graph.block)
        for state in self.graph.state:
            self._share((state.new,))
        fine = not self.stays and all(self._is_local(root) for root in self.writes)
        return set(self.writes) if fine else None

    def _block(self, block):
        for node in block.nodes:
            self.now += 1
            self._node(node)
            inside = self.loops
            if node.op == "prim::Loop":
                self.loops = (*inside, id(node))
            for inner in node.blocks:
                self._block(inner)
            self.loops = inside
            for value in node.outputs:
                if node.op in _FRESH:
                    self.made[id(value)] = self.loops
        self.now += 1
        self._share(block.outputs)

    def _node(self, node):
        if has_effect(node):
            form = FORMS.get(node.op)
            target = node.args[0] if node.args else None
            if form is None or not isinstance(target, Value):
                self.stays = True
                return
            self.writes.setdefault(id(target), []).append((self.now, self.loops))
            self._share(node.args[1:])
        elif node.op == "prim::Function" and any(has_effect(n) for b in node.blocks for n in b.walk()):
            self.stays = True
        elif node.op not in _READERS and (node.op.startswith("prim::") or node.blocks):
            self._share(node.args)

    def _share(self, args):
        for value in values_in(tuple(args)):
            self.shares.setdefault(id(value), []).append((self.now, self.loops))

    def _is_local(self, root):
        """Whether nobody else holds the object while it is changed."""
        around = self.made.get(root)
        if around is None:
            return False
        for shared, there in self.shares.get(root, ()):
            for written, here in self.writes[root]:
                together = [loop for loop in there if loop in here and loop not in around]
                if written > shared or together:
                    return False
        return True


def _rewrite(block, roots, now, graph):
    """Rewrite a block. now: {id of a root: the Value that the object is at this place}."""
    kept = []
    for node in block.nodes:
        node.args = tuple([_at(a, now) for a in node.args])
        if has_effect(node):
            target = node.args[0]
            root = next(r for r, value in now.items() if value is target)
            now[root] = _changed(node, graph, target)
        elif node.op in ("prim::If", "prim::Loop"):
            _through(node, roots, now, graph)
        else:
            for inner in node.blocks:
                _rewrite(inner, roots, dict(now), graph)
        kept.append(node)
        for value in node.outputs:
            if id(value) in roots:
                kept.append(_owned(value, node.line, graph))
                now[id(value)] = kept[-1].output
    block.nodes[:] = kept
    block.outputs = [_at(a, now) for a in block.outputs]


def _owned(value, line, graph):
    """The node that makes of a new object one that is the graph's alone: it is not another's constant or double."""
    node = Node("prim::own", (value,), (), line)
    node.outputs = (graph.value(value.type, node),)
    return node


def _at(a, now):
    return replaced(a, {v: now[id(v)] for v in values_in((a,)) if id(v) in now})


def _changed(node, graph, target):
    """Let a node give the changed object, the last of its outputs."""
    node.op = FORMS[node.op]
    new = graph.value(target.type, node)
    node.outputs = (*node.outputs, new)
    return new


def _through(node, roots, now, graph):
    """An If or Loop in which objects from outside are changed gives what has become of them."""
    inner = [n for block in node.blocks for n in block.walk() if has_effect(n)]
    changed = [r for r in now if any(id(n.args[0]) == r or n.args[0] is now[r] for n in inner)]
    for block in node.blocks:
        here = dict(now)
        if node.op == "prim::Loop":
            for root in changed:
                here[root] = graph.value(now[root].type)
                block.inputs.append(here[root])
        _rewrite(block, roots, here, graph)
        block.outputs += [here[root] for root in changed]
    if node.op == "prim::Loop":
        node.args = (*node.args, *(now[root] for root in changed))
    for root in changed:
        now[root] = graph.value(now[root].type, node)
        node.outputs = (*node.outputs, now[root])


FORMS = {f"prim::{old}": f"prim::{new}" for old, new in primitives.FORMS.items()}
