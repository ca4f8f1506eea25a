"""Lists, dicts and objects that only the graph knows: what changes one gives the changed one instead.

A graph fresh from source changes objects where the program does. An object that the graph made itself, and that nobody
else holds while it is changed, needs no effect for that: `prim::list.append(%l, %x)` becomes
`%m = prim::list.appended(%l, %x)`, and whatever read %l behind it reads %m, through If and Loop too. The new form takes
its argument over (see `primitives.containers`): nobody reads that afterwards, so nothing is copied.

Tensors that the graph made itself are written to in the same way, and blocks without gradients are told by tensors that
are detached (`writes`).

What may be held elsewhere while it is changed stays as it is, and with it the whole graph: an argument's list, an
attribute of a module, a list that was put into another before it was changed, a tensor of which a view is read after
it was written to. `stays` says which.
"""

from .. import primitives
from ..check import has_effect
from ..ir import Node, Value, replaced, values_in
from ..items import may_hold_tensors
from ..types import TENSOR
from . import writes
from .base import Pass, blocks, replace, uses

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
        "len", "getitem", "contains", "slice", "concat", "repeat", "min_of", "max_of", "sum_of", "prod_of", "sorted",
        "reversed", "to_list", "to_tuple", "any_of", "all_of", "unpack", "unpack_list", "list.index", "list.count",
        "list.copy", "dict.keys", "dict.values", "dict.items", "dict.get", "dict.copy", "dict.from_items", "eq", "ne",
        "lt", "le", "gt", "ge", "str", "str.join", "format", "percent", "print", "getattr", "bool", "not", "isinstance",
        "is", "isnot",
    )
}  # fmt: skip


class Functional(Pass):
    """Takes effects on local objects away. Leaves a graph as it is where one effect would stay."""

    def run(self, graph):
        if graph.effects:
            writes.without_results(graph)
            _without_invariants(graph)
            roots = _Census(graph).roots()
            if roots is not None:
                _rewrite(graph.block, roots, {}, graph)
                writes.detach(graph.block, graph)
                graph.effects = False
        return graph


def stays(graph):
    """The nodes for which a graph keeps its effects: what they change, others may hold."""
    census = _Census(graph)
    census.roots()
    return list(dict.fromkeys(census.stays))


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
        self.windows = {}  # id of a tensor -> (ids of those whose memory it may show, time, loops around)
        self.looks = {}  # id of a tensor -> [(time, loops) of a window on it, (time, loops) of its use]
        self.modes, self.within = [None], {}  # modes around; id of a tensor -> of which block without gradients
        self.asked = any(node.op in writes.ASKING for node in graph.walk())
        self.readers, self.stays = uses(graph), []  # nodes that stay as they are

    def roots(self):
        """{id of the Value of each object that is changed: it}, or None: an effect stays."""
        self._block(self.graph.block)
        for state in self.graph.state:
            self._share((state.new,))
        self.stays += [node for root, rows in self.writes.items() for *_, node in rows if not self._is_local(root)]
        return None if self.stays else set(self.writes)

    def _block(self, block):
        marks, own = writes.regions(block), writes.picked(block, self.readers)
        for node in block.nodes:
            self.now += 1
            if id(node) in marks:
                self._enter(node, marks[id(node)])
                continue
            self._node(node)
            inside = self.loops
            if node.op == "prim::Loop":
                self.loops = (*inside, id(node))
            for inner in node.blocks:
                self._block(inner)
            self.loops = inside
            for value in node.outputs:
                if node.op in _FRESH or id(value) in own or (value.type is TENSOR and writes.makes_memory(node)):
                    self.made[id(value)] = self.loops
                    self.within[id(value)] = self.modes[-1]
                elif writes.is_window(node):
                    self.windows[id(value)] = self._shown(node.args), self.now, self.loops
        self.now += 1
        self._share(block.outputs)

    def _enter(self, node, mode):
        """A block with a mode begins, or ends (None). One with gradients is known within one without only."""
        if mode is None:
            self.modes.pop()
        else:
            if (mode and self.modes[-1] is None) or self.asked:
                self.stays.append(node)
            self.modes.append(_Mode(mode))

    def _node(self, node):
        if not writes.fits(node, self.modes[-1] and self.modes[-1].on):
            self.stays.append(node)
        self._look(node.args)
        if has_effect(node):
            target = node.args[0] if node.args else None
            writing = writes.is_write(node)
            if not (writing or node.op in FORMS) or not isinstance(target, Value):
                self.stays.append(node)
                return
            if writing and self.within.get(id(target)) is not self.modes[-1]:
                self.stays.append(node)
            self.writes.setdefault(id(target), []).append((self.now, self.loops, node))
            if not writing:
                self._share(node.args[1:])
        elif node.op == "prim::Function" and any(has_effect(n) for b in node.blocks for n in b.walk()):
            self.stays.append(node)
        elif node.blocks or (node.op.startswith("prim::") and node.op not in _READERS and _holds_objects(node)):
            self._share(node.args)

    def _shown(self, args):
        """Tensors whose memory something made of args may show."""
        return {root for v in values_in(tuple(args)) for root in self.windows.get(id(v), ({id(v)},))[0]}

    def _look(self, args):
        for value in values_in(tuple(args)):
            roots, *made = self.windows.get(id(value), ((),))
            for root in roots:
                self.looks.setdefault(root, []).append((made, (self.now, self.loops)))

    def _share(self, args):
        self._look(args)
        for value in values_in(tuple(args)):
            for root in {id(value), *self._shown((value,))}:
                self.shares.setdefault(root, []).append((self.now, self.loops))

    def _is_local(self, root):
        """Whether nobody else holds the object while it is changed."""
        around = self.made.get(root)
        if around is None:
            return False
        for shared, there in self.shares.get(root, ()):
            for written, here, _ in self.writes[root]:
                together = [loop for loop in there if loop in here and loop not in around]
                if written > shared or together:
                    return False
        for (made, before), (used, there) in self.looks.get(root, ()):
            for written, here, _ in self.writes[root]:
                again = [loop for loop in there if loop in here and loop not in before]
                if made < written and (used > written or again):
                    return False
        return True


def _holds_objects(node):
    return any(may_hold_tensors(v.type) or v.type.args for v in node.outputs)


class _Mode:
    """A block of the program with a grad mode. Attributes: on."""

    __slots__ = ("on",)

    def __init__(self, on):
        self.on = on


def _rewrite(block, roots, now, graph):
    """Rewrite a block. now: {id of a root: the Value that the object is at this place}."""
    kept = []
    for node in block.nodes:
        node.args = tuple([_at(a, now) for a in node.args])
        if writes.is_write(node):
            root = next(r for r, value in now.items() if value is node.args[0])
            kept += writes.changed(node, graph)
            now[root] = kept[-1].output
            continue
        if has_effect(node) and node.op != writes.MODE:
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
            if id(value) in roots and value.type is TENSOR:
                now[id(value)] = value
            elif id(value) in roots:
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
