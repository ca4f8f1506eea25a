"""Which nodes of an exported graph were made within which call of which submodule.

Noted while a module is exported, kept in the notes of its program, and read by `unflatten`.
"""

from tinygrad_ext.core.call.levels import active_levels
from tinygrad_ext.graph.capture import Capture
from tinygrad_ext.graph.ir import used_values, values_in


class Calls:
    """Notes the calls of a module's submodules inside a `with`.

    Attributes: made: (path, number of the call that it is within, -1 for that of the module) of each call; nodes: name
    of a value -> number of the call, for nodes in none but the module's own nothing.
    """

    def __init__(self, module):
        self.module, self.level = module, None
        self.made, self.nodes, self.running = [], {}, [-1]

    def __enter__(self):
        for path, part in self.module.named_modules():
            if path and "forward" not in vars(part):
                part.__dict__["forward"] = self.noting(path, part.forward)
        return self

    def __exit__(self, *raised):
        for path, part in self.module.named_modules():
            if path and getattr(vars(part).get("forward"), "notes", None) is self:
                del part.__dict__["forward"]

    def noting(self, path, forward):
        def run(*args, **kwargs):
            level = next((level for level in active_levels() if isinstance(level, Capture)), None)
            if level is not self.level:  # a capture that begins, perhaps a second one
                self.level, self.made, self.nodes, self.running = level, [], {}, [-1]
            if level is None:
                return forward(*args, **kwargs)
            number, block = len(self.made), level.block
            start = len(block.nodes)
            self.made.append([path, self.running[-1]])
            self.running.append(number)
            try:
                return forward(*args, **kwargs)
            finally:
                self.running.pop()
                for node in block.nodes[start:]:
                    for value in node.outputs[:1]:
                        self.nodes.setdefault(value.name, number)

        run.notes = self
        return run

    def told(self, graph):
        """What the notes of a program say of its graph."""
        names = [v.name for node in graph.nodes for v in node.outputs[:1]]
        first, shared = {id(m): path for path, m in self.module.named_modules()}, []
        for path, part in self.module.named_modules(remove_duplicate=False):
            if first[id(part)] != path:
                shared.append([path, first[id(part)]])
        return {
            "shared": shared,
            "made": self.made,
            "nodes": {name: self.nodes[name] for name in names if name in self.nodes},
        }


class Call:
    """One call of a module: nodes and calls in order. Attributes: path, items, inputs, outputs, state, written."""

    def __init__(self, path):
        self.path, self.items = path, []
        self.inputs, self.outputs, self.state, self.written = [], [], [], []

    def nodes(self):
        """All nodes, those of inner calls too."""
        for item in self.items:
            yield from item.nodes() if isinstance(item, Call) else (item,)


def check_told(told, modules):
    """ValueError where notes of calls are not as `Calls.told` writes them. modules: the paths that there are."""
    made, nodes, shared = told["made"], told["nodes"], told["shared"]
    if not all(list(map(type, row)) == [str, str] and row[1] in modules for row in shared):
        raise ValueError("its shared modules are no pairs of paths")
    if type(made) is not list or type(nodes) is not dict:
        raise ValueError("its calls are no list and no dict")
    for i, (path, within) in enumerate(made):
        if type(path) is not str or path not in modules or type(within) is not int or not -1 <= within < i:
            raise ValueError("its calls are not of its modules, or not one within another")
    if not all(type(n) is int and 0 <= n < len(made) for n in nodes.values()):
        raise ValueError("a node is of no call")


def calls_of(graph, told):
    """The Call of the module, which holds those of its submodules. ValueError where the notes do not fit the graph."""
    made, of = told["made"], told["nodes"]
    root, open_calls, place = Call(""), {}, {}
    for node in graph.nodes:
        number = of.get(node.outputs[0].name, -1) if node.outputs else _call_of_args(node, place)
        place.update((id(v), number) for v in node.outputs)
        _opened(root, made, number, open_calls).items.append(node)
    if list(root.nodes()) != graph.nodes:
        raise ValueError("the calls of its modules are not one after the other")
    _flow(root, graph)
    return root


def _call_of_args(node, place):
    """A node without outputs is where what it looks at is made."""
    return max([place.get(id(v), -1) for v in values_in(node.args)], default=-1)


def _opened(root, made, number, open_calls):
    if number == -1:
        return root
    if number not in open_calls:
        path, within = made[number]
        call = open_calls[number] = Call(path)
        _opened(root, made, within, open_calls).items.append(call)
    return open_calls[number]


def _flow(root, graph):
    """Say of each call what goes in and out, and which state it reads and writes."""
    states = {id(s.value): s for s in graph.state}
    new = {id(s.new): s for s in graph.state if s.written}

    def follow(call, used_after):
        """used_after: ids of values that are read behind the call."""
        after = set(used_after)
        for item in reversed(call.items):
            if isinstance(item, Call):
                item.outputs = [v for n in item.nodes() for v in n.outputs if id(v) in after]
                follow(item, after)
            after.update(map(id, _read(item)))
        inside = {id(v) for n in call.nodes() for v in n.outputs}
        own = [n for n in call.items if not isinstance(n, Call)]
        call.state = list({id(v): states[id(v)] for n in own for v in _read(n) if id(v) in states}.values())
        call.written = [new[id(v)] for n in own for v in n.outputs if id(v) in new]
        read = dict.fromkeys(v for n in call.nodes() for v in _read(n))
        call.inputs = [v for v in read if id(v) not in inside and id(v) not in states]

    follow(root, {id(v) for v in values_in(graph.outputs)})
    made = {id(v) for n in root.nodes() for v in n.outputs}
    root.written += [s for s in graph.state if s.written and id(s.new) not in made]
    root.inputs = list(graph.inputs)
    known = {id(s) for s in root.state}
    wanted = {id(v) for v in values_in([*graph.outputs, *(s.new for s in root.written)])}
    root.state += [s for s in graph.state if id(s.value) in wanted and id(s) not in known]


def _read(item):
    """Values that a node or a call reads."""
    nodes = item.nodes() if isinstance(item, Call) else (item,)
    return [v for n in nodes for v in used_values(n)]
