"""A graph as the text of a Python function over `tinygrad_ext.ops`: to be read, and to be run by who pastes it.

    from tinygrad_ext import ops

    def f(x, n, *, w):
        # state: w is parameter "fc.weight"
        v1 = ops.aten.mul.Tensor(x, w)  # model.py:3 in f
        ...
        return v1, {"fc.weight": v1}

The function takes the inputs by position and the state by name. It returns the outputs, one alone, several as a tuple;
where the graph changes state a pair of them and a dict of what is new. A `prim::Function` is written as a class of
`autograd.Function` above it, so its derivative is not lost. The text may come from an archive of a stranger, so nothing
of a graph gets into it but names made of letters, and texts by `repr`.
"""

import builtins
import keyword
import re

from . import expressions
from .ir import Value, outer_values
from .signature import signature_of
from .types import TENSOR

_RESERVED = {*dir(builtins), *keyword.kwlist, "ops", "tg", "math", "TABLE", "Function", "ctx", "self", "grads"}
INDENT = "    "


def write_code(graph):
    """The text; see the head of this file. GraphError for a graph that breaks a rule."""
    return _Writer(graph.check()).text()


class _Writer:
    """Writes the lines of one graph. `names`: id of a Value -> its Python name."""

    def __init__(self, graph):
        self.graph = graph
        self.names, self.taken = {}, set(_RESERVED)
        self.classes, self.modules = [], set()
        self.last_line = ""

    def text(self):
        graph = self.graph
        name = self.free(graph.name)
        given = [self.name(v) for v in graph.inputs]
        if graph.state:
            given += ["*", *(self.name(s.value) for s in graph.state)]
        head = f"def {name}({', '.join(given)}):"
        lines = [f"# state: {self.names[id(s.value)]} is {_word(s.kind)} {s.name!r}" for s in graph.state]
        self.nodes(graph.block, lines)
        lines.append(self.returned())
        parts = [[head, *(INDENT + line for line in lines)]]
        text = "\n\n\n".join("\n".join(part) for part in [*self.classes, *parts])
        imports = [line for word, line in _IMPORTS.items() if word in self.modules]
        return "\n".join(imports) + "\n\n\n" * bool(imports) + text + "\n"

    def returned(self):
        outputs = [self.arg(a) for a in self.graph.outputs]
        told = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})" if outputs else "None"
        written = [f"{s.name!r}: {self.arg(s.new)}" for s in self.graph.state if s.written]
        return f"return {told}, {{{', '.join(written)}}}" if written else f"return {told}"

    # ---- names ----------------------------------------------------------------------------------------------------

    def name(self, value):
        """The Python name of a Value."""
        found = self.names.get(id(value))
        if found is None:
            found = self.names[id(value)] = self.free(value.name)
        return found

    def free(self, wanted):
        """An identifier near to a wanted name that nothing else has."""
        base = _word(wanted)
        base += "_" * (base in _RESERVED)
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name

    def arg(self, a):
        """An argument as an expression."""
        if isinstance(a, Value):
            return self.name(a)
        if type(a) is tuple or type(a) is list:
            return f"[{', '.join(map(self.arg, a))}]"
        if type(a) is slice:
            return f"slice({', '.join(map(self.arg, (a.start, a.stop, a.step)))})"
        text = expressions.constant(a)
        if text.startswith("tg."):
            self.modules.add("tg")
        return text

    # ---- statements -----------------------------------------------------------------------------------------------

    def nodes(self, block, lines):
        for node in block.nodes:
            if node.op in _CONTROL:
                if node.line:
                    lines.append(f"# {_comment(node.line)}")
                _CONTROL[node.op](self, node, lines)
                continue
            before = len(lines)
            (self.primitive if node.op.startswith("prim::") else self.op)(node, lines)
            if node.line and node.line != self.last_line and len(lines) > before:
                lines[-1] += f"  # {_comment(node.line)}"
            self.last_line = node.line

    def assign(self, outputs, expression, lines):
        """`a, b = expression`; of one output the text of an expression alone."""
        made = ", ".join(map(self.name, outputs))
        lines.append(f"{made} = {expression}" if made else expression)

    def move(self, names, args, lines):
        """Names get the values of arguments, all at once."""
        pairs = [(name, text) for name, text in zip(names, map(self.arg, args)) if name != text]
        if pairs:
            lines.append(f"{', '.join(n for n, _ in pairs)} = {', '.join(t for _, t in pairs)}")

    def primitive(self, node, lines):
        text = expressions.primitive(node.op, [self.arg(a) for a in node.args], node.args)
        self.modules.update(word for word in ("math", "TABLE") if text.startswith(f"{word}.") or f"{word}[" in text)
        if node.op == "prim::unpack" and len(node.outputs) == 1:
            text = f"{text}[0]"
        self.assign(node.outputs, text, lines)

    def op(self, node, lines):
        signature = signature_of(node.op)
        args = [self.arg(a) for a in node.args]
        copies, results = {}, list(node.outputs[: len(signature.returns)])
        for i, output in zip(signature.writes, node.outputs[len(signature.returns) :]):
            copies[i] = f"{args[i]}.clone()", output
        if signature.generator is not None and isinstance(node.args[signature.generator], Value):
            copies[signature.generator] = f"{args[signature.generator]}.clone_state()", node.outputs[-1]
        for i, (text, output) in copies.items():
            args[i] = self.name(output)
            lines.append(f"{args[i]} = {text}")
        self.modules.add("ops")
        call = f"{expressions.function(node.op)}({expressions.call_args(signature.op.schema, node.args, args)})"
        self.assign(results, call, lines)

    # ---- control flow ---------------------------------------------------------------------------------------------

    def indented(self, block, lines, rest):
        """The nodes of a block and what `rest(lines)` appends, one level deeper."""
        inner = []
        self.nodes(block, inner)
        rest(inner)
        lines += [INDENT + line for line in inner or ["pass"]]

    def branches(self, node, lines):
        made = [self.name(v) for v in node.outputs]
        for head, block in zip((f"if {self.arg(node.args[0])}:", "else:"), node.blocks):
            if head == "else:" and not block.nodes and not made:
                continue
            lines.append(head)
            self.indented(block, lines, lambda inner, block=block: self.move(made, block.outputs, inner))

    def loop(self, node, lines):
        count, condition, *carried = node.args
        (block,) = node.blocks
        turn, *inner_names = [self.name(v) for v in block.inputs]
        self.move(inner_names, carried, lines)
        goes_on = block.outputs[0]
        if count is not None and condition is True and goes_on is True:
            lines.append(f"for {turn} in range({self.arg(count)}):")
            self.indented(block, lines, lambda inner: self.move(inner_names, block.outputs[1:], inner))
        else:
            go = self.free(f"{turn}_goes_on")
            lines.append(f"{turn}, {go} = 0, {self.arg(condition)}")
            lines.append(f"while {go}:" if count is None else f"while {go} and {turn} < {self.arg(count)}:")

            def rest(inner):
                self.move([go, *inner_names], block.outputs, inner)
                inner.append(f"{turn} += 1")

            self.indented(block, lines, rest)
        made = [self.name(v) for v in node.outputs]
        if made:
            lines.append(f"{', '.join(made)} = {', '.join(inner_names)}")

    def function(self, node, lines):
        """One block: its nodes stand here. Two: a class, whose operands are all values that the blocks use."""
        forward = node.blocks[0]
        if len(node.blocks) == 1:
            self.move([self.name(v) for v in forward.inputs], node.args[1:], lines)
            self.nodes(forward, lines)
            self.move([self.name(v) for v in node.outputs], forward.outputs, lines)
            return
        outer = list(dict.fromkeys(v for block in node.blocks for v in outer_values(block)))
        name = self.free(node.args[0])
        self.modules.add("Function")
        self.classes.append(self.function_class(name, node, outer))
        operands = [self.arg(a) for a in (*node.args[1:], *outer)]
        self.assign(node.outputs, f"{name}.apply({', '.join(operands)})", lines)

    def function_class(self, name, node, outer):
        forward, backward = node.blocks
        count, last_line, self.last_line = len(node.outputs), self.last_line, ""
        kept = list(dict.fromkeys(a for a in (*forward.outputs[count:], *outer) if isinstance(a, Value)))
        tensors = [v for v in kept if v.type is TENSOR]
        others = [self.name(v) for v in kept if v.type is not TENSOR]
        inner = []
        self.nodes(forward, inner)
        if any(v.type.word == "Optional" for v in backward.inputs[:count]):
            inner.append("ctx.set_materialize_grads(False)")
        if tensors:
            inner.append(f"ctx.save_for_backward({', '.join(map(self.name, tensors))})")
        inner += [f"ctx.{v} = {v}" for v in others]
        inner.append(f"return {', '.join(map(self.arg, forward.outputs[:count]))}".rstrip())
        lines = [f"class {name}(Function):", *_static("forward", map(self.name, (*forward.inputs, *outer)), inner)]
        inner = []
        if tensors:
            inner.append(f"({', '.join(map(self.name, tensors))},) = ctx.saved_tensors")
        inner += [f"{v} = ctx.{v}" for v in others]
        self.move([self.name(v) for v in backward.inputs[count:]], forward.outputs[count:], inner)
        self.nodes(backward, inner)
        inner.append(f"return {', '.join([*map(self.arg, backward.outputs), *['None'] * len(outer)])}")
        self.last_line = last_line
        return [*lines, "", *_static("backward", map(self.name, backward.inputs[:count]), inner)]


def _static(name, given, lines):
    """Lines of a static method of a Function."""
    head = f"{INDENT}def {name}({', '.join(['ctx', *given])}):"
    return [f"{INDENT}@staticmethod", head, *(INDENT * 2 + line for line in lines)]


_CONTROL = {"prim::If": _Writer.branches, "prim::Loop": _Writer.loop, "prim::Function": _Writer.function}
_IMPORTS = {
    "math": "import math\n",
    "tg": "import tinygrad_ext as tg",
    "ops": "from tinygrad_ext import ops",
    "Function": "from tinygrad_ext.autograd import Function",
    "TABLE": "from tinygrad_ext.graph.primitives import TABLE",
}


def _word(text):
    """Text as an identifier: "fc.weight" -> "fc_weight", "1" -> "v1"."""
    word = re.sub(r"\W", "_", str(text), flags=re.A) or "v"
    return f"v{word}" if word[0].isdigit() else word


def _comment(line):
    """A user's line as a comment that is one line, whatever it holds."""
    return "".join([c if c.isprintable() else "?" for c in line])
