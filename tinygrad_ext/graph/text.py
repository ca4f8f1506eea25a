"""The text form of a graph: `write_graph` and `read_graph`, inverse to each other.

    graph    := "graph" name "(" inputs ")" ["effects"] "{" states nodes "return" args writes "}"
    input    := value ":" type
    state    := "state" value ":" type "=" kind string                  a name with its owner
    node     := [value ":" type ("," value ":" type)* "="] op ["@" version] "(" args ")" [" # " line] [" ! " owner]
                ["{" block+ "}"]
    block    := "block" "(" inputs ")" "{" nodes "yield" args "}"
    write    := "write" string "=" arg
    arg      := value | number | string | None | True | False | name | "[" args "]" | "slice(" arg "," arg "," arg ")"
                | "device(" string ")" | "..."

One node a line. A line of the user's program stands behind " # ", a foreign owner of the op before it behind " ! ".
"""

import json
import math
import re

from tinygrad_ext.core.data import dtype as dtypes

from .ir import Block, Node, State, Value
from .types import read_type

DEPTH = 30  # of lists in lists, and of blocks in blocks
DIGITS = 4300  # of a number, as Python's own limit
_NAMED = {
    **dtypes.by_name,
    **{
        name: getattr(dtypes, name)
        for name in ("strided", "contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
    },
}
_NAME_OF = {id(value): name for name, value in reversed(_NAMED.items())}
_WORDS = {"None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan, "...": Ellipsis}
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)", re.A)
_COMPLEX = re.compile(r"complex\(\s*([^,()]+),\s*([^,()]+)\)", re.A)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_WORD = re.compile(r"\.\.\.|[A-Za-z_]\w*", re.A)
_VALUE = re.compile(r"%([\w.]+)", re.A)
_OP = re.compile(r"([A-Za-z_]\w*::[\w.]+)(?:@(\d{1,9}))?\(", re.A)
_HEAD = re.compile(r"graph ([^\s(]+)\(", re.A)


# ---- writing -------------------------------------------------------------------------------------------------------


def write_graph(graph):
    lines = [f"graph {graph.name}({_typed(graph.inputs)}) {'effects ' * graph.effects}{{"]
    lines += [f"  state %{s.value.name}: {s.value.type} = {s.kind} {json.dumps(s.name)}" for s in graph.state]
    _write_nodes(graph.block, lines, "  ")
    lines.append(f"  return {_args(graph.outputs)}".rstrip())
    lines += [f"  write {json.dumps(s.name)} = {write_arg(s.new)}" for s in graph.state if s.written]
    return "\n".join([*lines, "}"])


def _typed(values):
    return ", ".join([f"%{v.name}: {v.type}" for v in values])


def node_line(node):
    """The first line of a node."""
    made = f"{_typed(node.outputs)} = " if node.outputs else ""
    version = f"@{node.version}" if node.version != 1 else ""
    line = f"{made}{node.op}{version}({_args(node.args)})"
    if node.blocks:
        line += " {"
    if node.owner != "tinygrad_ext":
        line += f"  ! {node.owner}"
    return line + (f"  # {node.line}" if node.line else "")


def _write_nodes(block, lines, indent):
    for node in block.nodes:
        lines.append(indent + node_line(node))
        for inner in node.blocks:
            lines.append(f"{indent}  block({_typed(inner.inputs)}) {{")
            _write_nodes(inner, lines, indent + "    ")
            lines += [f"{indent}    yield {_args(inner.outputs)}".rstrip(), f"{indent}  }}"]
        if node.blocks:
            lines.append(indent + "}")


def _args(args):
    return ", ".join(map(write_arg, args))


def write_arg(a):
    """An argument as text: %x, 1.5, [1, %n], "same", float32."""
    if type(a) is Value:
        return f"%{a.name}"
    if a is None or type(a) in (bool, int, float):
        return repr(a)
    if a is Ellipsis:
        return "..."
    if type(a) is str:
        return json.dumps(a)
    if type(a) is tuple or type(a) is list:
        return f"[{_args(a)}]"
    if type(a) is complex:
        return f"complex({a.real!r}, {a.imag!r})"
    if type(a) is slice:
        return f"slice({_args((a.start, a.stop, a.step))})"
    if type(a) is dtypes.device:
        return f"device({json.dumps(str(a))})"
    if id(a) in _NAME_OF:
        return _NAME_OF[id(a)]
    raise TypeError(
        f"a graph cannot hold {a!r}, a {type(a).__name__}: it takes numbers, strings, None, dtypes, devices"
    )


# ---- reading -------------------------------------------------------------------------------------------------------


def read_graph(text, graph):
    """Fill an empty graph with what text says; returns it."""
    if not isinstance(text, str):
        raise TypeError(f"Graph.parse(): argument 'text' must be a str, not {type(text).__name__}")
    return _Reader(text, graph).graph()


class _Reader:
    """Reads line by line; `pos` is where it stands in the current one."""

    def __init__(self, text, graph):
        self.lines = text.split("\n")
        self.number = -1
        self.line, self.pos = "", 0
        self.values = {}
        self.depth = self.block_depth = 0
        self.built = graph
        self.next_line()

    def graph(self):
        graph = self.built
        match = self.match(_HEAD, "'graph name('")
        graph.name = match[1]
        graph.block.inputs = self.typed_until(")")
        graph.effects = self.peek(" effects")
        self.expect(" effects {" if graph.effects else " {")
        self.next_line()
        while self.peek("  state "):
            graph.state.append(self.state())
        self.nodes(graph.block, "  ")
        self.expect("  return")
        graph.block.outputs = list(self.args_to_end())
        self.next_line()
        states = {s.name: s for s in graph.state}
        while self.peek("  write "):
            self.write(states)
        self.expect("}")
        for rest in self.lines[self.number + 1 :]:
            if rest.strip():
                self.number, self.line, self.pos = self.lines.index(rest), rest, 0
                self.fail("the end of the text")
        return graph

    # ---- lines ----------------------------------------------------------------------------------------------------

    def next_line(self):
        self.number += 1
        if self.number >= len(self.lines):
            self.line, self.pos = "", 0
            self.fail("another line; the graph has no end '}'")
        self.line, self.pos = self.lines[self.number], 0

    def fail(self, wanted):
        found, shown = self.line[self.pos : self.pos + 30], self.line[max(self.pos - 100, 0) : self.pos + 100]
        raise ValueError(f"graph text, line {self.number + 1}: expected {wanted}, found {found!r}\n    {shown}")

    def peek(self, text):
        return self.line.startswith(text, self.pos)

    def expect(self, text):
        if not self.peek(text):
            self.fail(repr(text.strip() or text))
        self.pos += len(text)

    def match(self, pattern, wanted):
        match = pattern.match(self.line, self.pos)
        if match is None:
            self.fail(wanted)
        self.pos = match.end()
        return match

    def skip(self):
        while self.pos < len(self.line) and self.line[self.pos] == " ":
            self.pos += 1

    # ---- parts ----------------------------------------------------------------------------------------------------

    def new_value(self):
        name = self.match(_VALUE, "a value such as %x")[1]
        if name in self.values:
            self.fail(f"a name that is not taken; %{name} is made twice")
        self.expect(": ")
        try:
            type, self.pos = read_type(self.line, self.pos)
        except ValueError as error:
            self.fail(f"a type ({error})")
        self.values[name] = found = self.built.value(type, name=name)
        return found

    def typed_until(self, end):
        found = []
        while not self.peek(end):
            if found:
                self.expect(", ")
            found.append(self.new_value())
        self.expect(end)
        return found

    def string(self):
        start, text = self.pos, self.match(_STRING, "a text in quotes")[0]
        try:
            return json.loads(text)
        except ValueError:
            self.pos = start
            self.fail("a text in quotes as JSON has it")

    def state(self):
        self.expect("  state ")
        value = self.new_value()
        self.expect(" = ")
        kind = self.match(_WORD, "a kind such as parameter")[0]
        self.skip()
        found = State(self.string(), kind, value)
        self.next_line()
        return found

    def write(self, states):
        self.expect("  write ")
        name = self.string()
        if name not in states:
            self.fail(f"the name of a state before {name!r}")
        self.expect(" = ")
        states[name].new = self.arg()
        self.next_line()

    def nodes(self, block, indent):
        while self.peek(indent) and not (self.peek(indent + "return") or self.peek(indent + "yield")):
            block.nodes.append(self.node(indent))

    def node(self, indent):
        self.expect(indent)
        outputs = []
        while self.peek("%"):
            outputs.append(self.new_value())
            self.expect(" = " if not self.peek(", ") else ", ")
        op, version = self.match(_OP, "an op such as aten::add.Tensor(").groups()
        node = _node(op, self.args_until(")"), int(version or 1), outputs)
        opened = self.peek(" {")
        if opened:
            self.expect(" {")
        self.comment(node)
        self.next_line()
        if opened:
            node.blocks = tuple(self.blocks(indent))
        return node

    def comment(self, node):
        owner, _, line = self.line[self.pos :].partition("  # ")
        if owner.startswith("  ! "):
            node.owner = owner[4:]
        elif owner:
            self.fail("the end of the line, '  # ' and a place, or '  ! ' and an owner")
        node.line = line

    def blocks(self, indent):
        self.block_depth += 1
        if self.block_depth > DEPTH:
            self.fail(f"at most {DEPTH} blocks within each other")
        while not self.peek(indent + "}"):
            self.expect(indent + "  block(")
            inner = Block(self.typed_until(")"))
            self.expect(" {")
            self.next_line()
            self.nodes(inner, indent + "    ")
            self.expect(indent + "    yield")
            inner.outputs = list(self.args_to_end())
            self.next_line()
            self.expect(indent + "  }")
            self.next_line()
            yield inner
        self.block_depth -= 1
        self.next_line()

    def args_to_end(self):
        if self.pos == len(self.line):
            return ()
        self.expect(" ")
        found = [self.arg()]
        while self.pos < len(self.line):
            self.expect(", ")
            found.append(self.arg())
        return tuple(found)

    def args_until(self, end):
        found = []
        self.depth += 1
        if self.depth > DEPTH:
            self.fail(f"at most {DEPTH} lists within each other")
        while not self.peek(end):
            if found:
                self.expect(", ")
            found.append(self.arg())
        self.expect(end)
        self.depth -= 1
        return tuple(found)

    def arg(self):
        match = _VALUE.match(self.line, self.pos)
        if match is not None:
            self.pos = match.end()
            if match[1] not in self.values:
                self.fail(f"a value made before; %{match[1]} is not")
            return self.values[match[1]]
        if self.peek("["):
            self.pos += 1
            return self.args_until("]")
        if self.peek('"'):
            return self.string()
        match = _COMPLEX.match(self.line, self.pos)
        if match is not None:
            self.pos = match.end()
            try:
                return complex(float(match[1]), float(match[2]))
            except ValueError:
                self.pos = match.start()
                self.fail("two numbers")
        match = _NUMBER.match(self.line, self.pos)
        if match is not None:
            self.pos = match.end()
            if len(match[0]) > DIGITS:
                self.fail(f"a number of at most {DIGITS} digits")
            return int(match[0]) if re.fullmatch(r"[-+]?\d+", match[0]) else float(match[0])
        return self.word()

    def word(self):
        start = self.pos
        word = self.match(_WORD, "an argument")[0]
        if word in _WORDS:
            return _WORDS[word]
        if word in _NAMED:
            return _NAMED[word]
        if word == "slice" and self.peek("("):
            self.pos += 1
            parts = self.args_until(")")
            if len(parts) == 3:
                return slice(*parts)
        elif word == "device" and self.peek("("):
            self.pos += 1
            parts = self.args_until(")")
            if len(parts) == 1 and type(parts[0]) is str:
                try:
                    return dtypes.device(parts[0])
                except RuntimeError:
                    pass
        self.pos = start
        self.fail("an argument: a value, a number, a string, None, a dtype, a device or a list of them")


def _node(op, args, version, outputs):
    node = Node(op, args, version=version)
    node.outputs = tuple(outputs)
    for value in outputs:
        value.node = node
    return node
