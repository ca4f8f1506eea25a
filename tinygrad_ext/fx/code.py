"""An fx graph as the source of a Python function.

Literals stand as they are; functions of the package by their path, `tinygrad_ext.relu`; everything else that a call
needs gets a name among the globals that go with the source.
"""

import builtins
import linecache
import math
import operator
import re
from collections import namedtuple

from tinygrad_ext.core.data import dtype as dtypes
from tinygrad_ext.core.data.tensor import Tensor

from .codegen import ending
from .node import Node, qualified_name, type_name

PythonCode = namedtuple("PythonCode", "src globals")

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@"}
_SIGNS |= {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "and_": "&", "or_": "|", "xor": "^"}
_SIGNS |= {"lshift": "<<", "rshift": ">>"}
_BINARY = {getattr(operator, name): f"{{}} {sign} {{}}" for name, sign in _SIGNS.items()}
_UNARY = {operator.neg: "-{}", operator.invert: "~{}", operator.pos: "+{}"}


def python_code(graph, root="self", verbose=False):
    """The PythonCode of a graph. verbose: with what `meta` tells of nodes, see `Graph.python_code`."""
    return _Writer(graph, root, verbose).code()


class _Writer:
    def __init__(self, graph, root, verbose):
        self.graph, self.root, self.verbose, self.place = graph, root, verbose, ""
        self.globals = {}
        self.dies = _last_uses(graph)

    def code(self):
        given, body, returns = [], [], ""
        for node in self.graph.nodes:
            if node.op == "placeholder":
                given.append(self.parameter(node))
                plain = node.target.lstrip("*")
                line = f"{node.name} = {plain}" if plain != node.name else ""
            elif node.op == "output":
                returns = f" -> {self.annotation(node.type)}" if node.type is not None else ""
                line = ending(self.graph._codegen, node.args[0], self.text)
            else:
                note = f" : {self.annotation(node.type)}" if node.type is not None else self.kind(node)
                line = f"{node.name}{note} = {self.call(node)}"
                body += self.heading(node)
            done = "" if node.op == "output" else self.deletion(node)
            if line or done:
                body.append(f"{line};  {done}" if line and done else line or done)
        # stars last, names alone behind them
        given.sort(key=lambda text: 2 * text.startswith("**") + text.startswith("*"))
        return PythonCode(f"\n\n\n{self.function_of(given, body, returns)}\n", self.globals)

    def function_of(self, given, body, returns):
        """The text of the function, in the frame that the graph's CodeGen gives it."""
        codegen = self.graph._codegen
        lines = [f"{line}\n" for line in body or ["pass"]]
        if codegen._body_transformer is not None:
            lines = codegen._body_transformer(lines)
        self.globals.update(codegen.additional_globals())
        text = "".join(lines).strip("\n")
        body = "\n".join(f"    {line}" if line else "" for line in text.split("\n"))
        return f"{codegen.gen_fn_def(given, returns)}\n{body}"

    def deletion(self, node):
        dead = self.dies.get(node, ())
        return f"{' = '.join(n.name for n in dead)} = None" if dead else ""

    def parameter(self, node):
        note = f" : {self.annotation(node.type)}" if node.type is not None else self.kind(node)
        return f"{node.target}{note}{f' = {self.text(node.args[0])}' if node.args else ''}"

    def kind(self, node):
        """What a tensor is for the example, as an annotation: `: "f32[5, 3]"`."""
        value = node.meta.get("val") if self.verbose else None
        if not isinstance(value, Tensor):
            return ""
        letters = {"float": "f", "int": "i", "uint": "u", "complex": "c", "bfloat": "bf", "bool": "b"}
        word, digits = re.fullmatch(r"([a-z]+)(\w*)", value.dtype.name).groups()
        return f': "{letters.get(word, word)}{8 if word == "bool" else digits}{list(map(int, value.shape))}"'

    def heading(self, node):
        """A comment with the user's line, where it is another than that of the node before."""
        place = str(node.meta.get("stack_trace") or "") if self.verbose else ""
        if not place or place == self.place:
            return []
        self.place = place
        path, _, rest = place.partition(" in ")[0].rpartition(":")
        code = linecache.getline(path, int(rest)).strip() if rest.isdigit() else ""
        told = place.strip().splitlines()[-1]
        return ["", f"# File: {told}, code: {code}" if code else f"# {told}"]

    def annotation(self, kind):
        text = type_name(kind)
        if re.fullmatch(r"[A-Za-z_]\w*", text) and hasattr(builtins, text):
            return text
        word = getattr(kind, "__name__", "type")
        name = f"tinygrad_ext.{word}"
        return name if self.is_path(name, kind) else self.constant(kind, word)

    # ---- calls ----------------------------------------------------------------------------------------------------

    def call(self, node):
        if node.op == "get_attr":
            return _path(self.root, node.target)
        args = [self.text(a) for a in node.args]
        if node.op == "call_function":
            short = self.short(node, args)
            if short is not None:
                return short
            function = self.function(node.target)
        elif node.op == "call_method":
            function = f"{self.operand(node.args[0], args[0])}.{node.target}"
            args = args[1:]
        else:
            function = _path(self.root, node.target)
        return f"{function}({', '.join([*args, *(f'{k} = {self.text(v)}' for k, v in node.kwargs.items())])})"

    def short(self, node, args):
        """Operators, brackets and dots."""
        target = node.target
        if node.kwargs:
            return None
        operands = [self.operand(a, text) for a, text in zip(node.args, args)]
        if target in _BINARY and len(args) == 2:
            return _BINARY[target].format(*operands)
        if target in _UNARY and len(args) == 1:
            return _UNARY[target].format(*operands)
        if target is operator.getitem and len(args) == 2:
            return f"{operands[0]}[{args[1]}]"
        if target is getattr and len(args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{operands[0]}.{node.args[1]}"
        return None

    def operand(self, a, text):
        return text if isinstance(a, Node) or re.fullmatch(r"\d+|\w+\.\w+", text) else f"({text})"

    def function(self, target):
        if getattr(builtins, getattr(target, "__name__", ""), None) is target:
            return target.__name__
        name = qualified_name(target)
        if name.startswith("tinygrad_ext.") and self.is_path(name, target):
            return name
        hint = getattr(target, "__qualname__", None) or type(target).__name__
        return self.constant(target, f"{getattr(target, '__module__', '')}.{hint}")

    def is_path(self, name, wanted):
        import tinygrad_ext  # lazy: the package's own door, where its names are found

        found = tinygrad_ext
        for part in name.split(".")[1:]:
            found = getattr(found, part, None)
        if found is wanted:
            self.globals["tinygrad_ext"] = tinygrad_ext
        return found is wanted

    # ---- values ---------------------------------------------------------------------------------------------------

    def text(self, a):
        if isinstance(a, Node):
            return a.name
        if isinstance(a, tuple):
            if hasattr(a, "_fields"):
                return f"{self.constant(type(a), type(a).__name__)}({', '.join(map(self.text, a))})"
            return f"({', '.join(map(self.text, a))}{',' * (len(a) == 1)})"
        if isinstance(a, list):
            return f"[{', '.join(map(self.text, a))}]"
        if isinstance(a, dict):
            return f"{{{', '.join(f'{k!r}: {self.text(v)}' for k, v in a.items())}}}"
        if type(a) is slice:
            return f"slice({self.text(a.start)}, {self.text(a.stop)}, {self.text(a.step)})"
        if type(a) is float and not math.isfinite(a):
            return f'float("{a!r}")'
        if a is None or a is Ellipsis or type(a) in (bool, int, float, str, bytes):
            return repr(a)
        if type(a) is dtypes.dtype and self.is_path(f"tinygrad_ext.{a.name}", a):
            return f"tinygrad_ext.{a.name}"
        if type(a) is type or callable(a):
            return self.function(a)
        return self.constant(a, f"constant_{type(a).__name__}")

    def constant(self, value, wanted):
        """The global name of a value."""
        base = name = re.sub(r"\W", "_", wanted)
        taken = {node.name for node in self.graph.nodes}
        count = 0
        while name in taken or (name in self.globals and self.globals[name] is not value):
            count += 1
            name = f"{base}_{count}"
        self.globals[name] = value
        return name


def _path(root, target):
    """root.a.b, and getattr(root.a, "0") where that is no identifier."""
    text = root
    for part in target.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text


def _last_uses(graph):
    """node -> the nodes whose value nobody needs after it, so that memory is given back."""
    dies, seen = {}, set()
    for node in reversed(graph.nodes):
        last = [used for used in node.all_input_nodes if used not in seen]
        seen.update(last)
        if node.op not in ("placeholder", "output") and not node.users:
            last.append(node)
        dies[node] = last
    return dies
