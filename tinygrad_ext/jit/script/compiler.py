"""The compiler's state: the graph, the block that is written, the names, the function that is compiled.

How each kind of statement and expression is compiled stands in the files around, which add their handlers to the tables
here (`@expression(ast.Name)`): so the files need not know each other.
"""

import ast
import contextlib

from tinygrad_ext.graph import Graph, State
from tinygrad_ext.graph.check import has_effect
from tinygrad_ext.graph.ir import Block, Value
from tinygrad_ext.graph.passes import Functional
from tinygrad_ext.graph.signature import output_types, signature_of
from tinygrad_ext.graph.types import ANY, BOOL, FLOAT, INT, NONE, STR, TENSOR, Type, accepts

from .conversions import as_declared
from .environment import ABSENT, Branch, Scope, merge, refine
from .errors import CompileError, Error, UnsupportedNodeError, message, misfit
from .types import NoType, parts_of, unify
from .values import DictLiteral, ListLiteral, Static, TupleValue, Unbound, common_type, type_of

EXPRESSIONS, STATEMENTS = {}, {}
HOOKS = {}  # "attribute", "python", "call": filled by the file that knows


# what Python raises where nobody thought of a program: the user learns of it by the line
_SLIPS = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, AssertionError, RecursionError, NoType)


def expression(*kinds):
    """Decorator: how to compile these nodes; function(c, node) -> operand."""
    return lambda function: EXPRESSIONS.update(dict.fromkeys(kinds, function)) or function


def statement(*kinds):
    """Decorator: how to compile these statements; function(c, node)."""
    return lambda function: STATEMENTS.update(dict.fromkeys(kinds, function)) or function


def hook(function):
    """Decorator: what others call by name, `c.hook_name(...)`."""
    HOOKS[function.__name__] = function
    return function


class Frame:
    """A function being compiled. Attributes: source, lookup (name -> Python object, or LookupError), returns (the
    declared type or None), returned (the type of what it returned so far), owner: what compiles it, ours: whether it
    is one of the package, whose functions take what their callers have and need no annotations; at_statement: the
    scope of the statement that is compiled."""

    def __init__(self, source, lookup, returns=None, owner=None):
        self.source, self.lookup, self.returns, self.owner = source, lookup, returns, owner
        self.at_statement = None
        self.returned, self.root, self.set_at = None, None, {}  # set_at: attribute -> where __init__ first sets it
        try:
            self.ours = str(lookup("__name__")).startswith("tinygrad_ext.")
        except LookupError:
            self.ours = False


class Compiler:
    """Compiles one entry, and all it calls, to one graph."""

    def __init__(self, name):
        self.graph = Graph(name)
        self.block, self.scope, self.fields = self.graph.block, Scope(), Scope()
        self.root_fields = self.fields
        self.frames, self.nodes, self.calls = [], [], []
        self.accessors = {}  # key of a field -> (State, owner, attribute)
        self.defaults = {}  # id of a tensor that is a default -> what holds it
        self.broadcasts = {}  # annotation -> how often one item stands for a list
        self.untold = {}  # id of an input that is a Tensor for want of an annotation -> its name
        self.modules = {}  # id of a module that is a value -> what holds it
        self.loops = 0
        self.leaving = []  # what leaves each `with` around this place, outermost first
        self.unpromised = None  # the last result of a Python function without a type for it

    def __getattr__(self, name):
        try:
            function = HOOKS[name]
        except KeyError:
            raise AttributeError(name) from None
        return function.__get__(self)

    # ---- where we are ---------------------------------------------------------------------------------------------

    @property
    def frame(self):
        return self.frames[-1]

    @property
    def line(self):
        if not (self.frames and self.nodes):
            return ""
        return self.frame.source.line(self.nodes[-1], [(frame.source, node) for frame, node in self.calls])

    def fault(self, what, instead="", node=None, kind=CompileError, in_caller=False):
        """Raise an error about the node that is being compiled, or in_caller the call that led here."""
        source, calls = self.frames[-1].source if self.frames else None, self.calls
        if in_caller and calls:
            (caller, node), calls = calls[-1], calls[:-1]
            source = caller.source
        node = node if node is not None else self.nodes[-1] if self.nodes else None
        text = message(what, source, node, instead)
        name = source.name if source is not None else ""
        for caller, at in reversed(calls):
            text += f"\n'{name}' is being compiled since it was called from '{caller.source.name}'\n"
            text += caller.source.mark(at)
            name = caller.source.name
        raise kind(text)

    @contextlib.contextmanager
    def inside(self, block, scope, fields):
        """Write into another block."""
        was = self.block, self.scope, self.fields
        self.block, self.scope, self.fields = block, scope, fields
        try:
            yield
        finally:
            self.block, self.scope, self.fields = was

    @contextlib.contextmanager
    def at(self, node):
        self.nodes.append(node)
        try:
            yield
        finally:
            self.nodes.pop()

    # ---- compiling ------------------------------------------------------------------------------------------------

    def expression(self, node):
        """The operand that an expression is."""
        function = EXPRESSIONS.get(type(node))
        with self.at(node):
            if function is None:
                self.fault(f"{_words(node)} aren't supported in script", kind=UnsupportedNodeError)
            return function(self, node)

    def statement(self, node):
        function = STATEMENTS.get(type(node))
        with self.at(node):
            if function is None:
                self.fault(f"{_words(node)} aren't supported in script", kind=UnsupportedNodeError)
            try:
                function(self, node)
            except _SLIPS as error:
                if isinstance(error, Error):
                    raise
                self.fault(f"this cannot be compiled: {type(error).__name__}: {error}")

    # ---- writing the graph ----------------------------------------------------------------------------------------

    def emit(self, op, args, type=TENSOR, blocks=()):
        """Append a node with one output; its Value."""
        return self.node(op, args, (type,), blocks).output

    def effect(self, op, *args):
        """Append a node that gives nothing."""
        self.node(op, args, ())

    def node(self, op, args, types, blocks=()):
        """Append a node; args are operands that are values or constants."""
        made = self.graph.make(self.block, op, args, types, blocks=blocks, line=self.line)
        if has_effect(made):
            self.graph.effects = True
        return made

    def op(self, name, args):
        """Append a node of an op with all its arguments; its results as an operand."""
        signature = signature_of(name)
        made = self.node(name, args, output_types(signature, args))
        outputs = made.outputs[: len(signature.returns)]
        for i, new in zip(signature.writes, made.outputs[len(signature.returns) :]):
            self.write_back(args[i], new)
        if signature.generator is not None and isinstance(args[signature.generator], Value):
            self.effect("prim::generator.advance", args[signature.generator], made.outputs[-1])
        if len(outputs) == 1:
            return outputs[0]
        names = [r.name or "" for r in signature.op.schema.returns]
        return TupleValue(outputs, names) if outputs else None

    def write_back(self, old, new):
        """The op has computed what an argument is afterwards; put it where the argument is."""
        if old is None:
            return
        if type_of(old) is TENSOR:
            self.node("aten::copy_", (old, new, False), (TENSOR,))
            return
        self.choose(
            self.emit("prim::isnot", (old, None), BOOL),
            lambda: self.write_back(self.emit("prim::cast", (old,)), self.emit("prim::cast", (new,))),
            lambda: None,
        )

    def output(self, node, branches, values, type):
        """Add an output to an If, which its branches yield."""
        for branch, operand in zip(branches, values):
            branch.block.outputs.append(branch.give(self, operand, type))
        made = self.graph.value(type, node)
        node.outputs += (made,)
        return made

    # ---- operands as values ---------------------------------------------------------------------------------------

    def value(self, operand, wanted=None, what="a value"):
        """The operand as a Value or constant of the wanted type."""
        if isinstance(operand, Unbound):
            self.fault(operand.reason)
        if isinstance(operand, Static):
            operand = self._whole(operand, wanted, what)
        elif operand is Ellipsis or type(operand) is slice:
            self.fault("this is only an index")
        operand = as_declared(self, self.cast_to_interface(operand, wanted), wanted, what)
        given = type_of(operand)
        if wanted is not None and not accepts(wanted, given):
            self.fault(misfit(what, wanted, given), self._way_out(wanted, given))
        return operand

    def _way_out(self, wanted, given):
        if given is TENSOR and wanted in (INT, FLOAT, BOOL):
            return f"Write {wanted}(x) or x.item() to take the number out of a tensor."
        if given.is_optional and not wanted.is_optional:
            return "Check `is not None` (or assert it) before, on a local variable."
        if wanted is FLOAT and given is INT:
            return "Write float(x), or the number with a point."
        return ""

    def _whole(self, operand, wanted, what):
        """A tuple, list or dict that was kept apart, as a value."""
        wanted_parts = parts_of(wanted) if wanted is not None else ()
        words = {t.word for t in wanted_parts}
        self._check_literal(operand, wanted, words)
        if isinstance(operand, TupleValue) and "List" in words and "Tuple" not in words:
            operand = ListLiteral(operand.values)
        if isinstance(operand, TupleValue):
            inner = next((t.args for t in wanted_parts if t.word == "Tuple" and len(t.args) == len(operand.values)), ())
            items = [self.value(v, inner[i] if inner else None, what) for i, v in enumerate(operand.values)]
            return self.emit("prim::tuple", items, Type("Tuple", inner or map(type_of, items)))
        if isinstance(operand, ListLiteral):
            (inner,) = self._wanted("List", wanted_parts, (operand.values,)) or (None,)
            items = [self.value(v) if isinstance(v, Static) and type_of(v) is None else v for v in operand.values]
            inner = inner or self._common(items, "items of a list")
            items = [self.value(v, inner, "a list literal") for v in items]
            return self.emit("prim::list", items, Type("List", (inner,)))
        if isinstance(operand, DictLiteral):
            inner = self._wanted("Dict", wanted_parts, (operand.keys, operand.values))
            if inner is None:
                key = self._common(operand.keys, "keys of a dict") if operand.keys else STR
                inner = key, self._common(operand.values, "values of a dict")
            items, told = [], Type("Dict", inner)
            for k, v in zip(operand.keys, operand.values):
                items += [self.value(k, inner[0], f"key of {told}"), self.value(v, inner[1], f"value of {told}")]
            return self.emit("prim::dict", items, told)
        return operand.as_value(self)

    def _check_literal(self, operand, wanted, words):
        word = {ListLiteral: "List", DictLiteral: "Dict"}.get(type(operand))
        if (
            word is not None
            and wanted is not None
            and word not in words
            and not accepts(wanted, Type(word, (ANY, ANY)))
        ):
            told = "Union type annotation with an inner" if wanted.word == "Union" else "annotation of type"
            self.fault(f"Expected an {told} {word}{' type' if wanted.word == 'Union' else ''}, not {wanted}")

    def _wanted(self, word, parts, rows):
        """The types in the brackets of the one List or Dict among several types that takes these items, or None."""
        found = [t.args for t in parts if t.word == word]
        if len(found) < 2:
            return found[0] if found else None
        told = ", ".join(f"{word}[{', '.join(map(str, args))}]" for args in found)
        if not any(rows):
            self.fault(
                f"there are multiple possible {word} type candidates in the Union annotation: {told}",
                f"Say which one it is: annotate({word}[{', '.join(map(str, found[0]))}], ...).",
            )
        given = tuple([common_type(row) for row in rows])
        for args in found if given not in found else [given]:
            if None not in given and all(map(accepts, args, given)):
                return args
        return self.fault(
            f"of {told} in the Union annotation, none of those {_NONE_OF[word]}: {', '.join(map(str, given))}"
        )

    def _common(self, operands, what):
        for operand in operands:
            if type_of(operand) is None:
                self.value(operand)
        found = common_type(operands)
        if found is None:
            told = ", ".join(dict.fromkeys(str(type_of(o)) for o in operands))
            self.fault(f"{what} have one type, but these have {told}")
        return found

    # ---- two ways -------------------------------------------------------------------------------------------------

    def choose(self, condition, then, otherwise, refinements=({}, {}), result=False):
        """An If node: functions that compile its branches. result: they give an operand, and so does this; with "bool",
        one that says whether it is true where the two have no common type."""
        branches, results = [], []
        for function, refined in zip((then, otherwise), refinements):
            scope, fields = Scope(self.scope), Scope(self.fields)
            block = Block()
            with self.inside(block, scope, fields):
                refine(self, refined)
                results.append(function())
            branches.append(Branch(block, scope, fields))
        node = self.node("prim::If", (condition,), (), [b.block for b in branches])
        found = self._result_of(node, branches, results, result) if result else None
        merge(self, node, branches)
        if self.block.nodes[-1] is node and not any(b.block.nodes for b in branches):
            if not node.outputs:
                self.block.nodes.pop()
            elif (
                result
                and len(node.outputs) == 1
                and [b.block.outputs[0] is w for b, w in zip(branches, (True, False))] == [True, True]
            ):
                self.block.nodes.pop()
                return condition
        return found

    def _result_of(self, node, branches, results, result):
        a, b = results
        if a is b:
            return a
        types = [type_of(r) for r in results]
        if types == [None, None] and self.are_modules(results):
            return self.choice(results, self.output(node, branches, [0, 1], INT))
        if None in types:
            self.fault("a value that depends on a condition is a value of a graph in both ways")
        type = unify(*types)
        if type is None and result == "bool":
            for i, branch in enumerate(branches):
                with self.inside(branch.block, branch.scope, branch.fields):
                    results[i] = self.truth(results[i])
            type = BOOL
        if type is None:
            self.fault(f"both ways have one type, but the first has {types[0]} and the second {types[1]}")
        return self.output(node, branches, results, type)

    # ---- attributes of modules ------------------------------------------------------------------------------------

    def field(self, owner, attribute, path, kind, type):
        """The current value of an attribute that is state of the graph."""
        key = (id(owner), attribute)
        found = self.fields.find(key)
        if found is not ABSENT:
            return found
        taken = {s.name for s in self.graph.state}
        number, name = 1, path
        while name in taken:
            name, number = f"{path}.{number}", number + 1
        value = self.graph.value(type, name=name.replace(".", "_"))
        state = State(name, kind, value)
        self.graph.state.append(state)
        self.accessors[key] = (state, owner, attribute)
        self.root_fields.bound[key] = value
        return value

    def set_field(self, key, operand):
        self.fields.bound[key] = operand

    def field_name(self, key):
        return self.accessors[key][0].name

    def finish(self, result):
        """The checked graph that returns this operand."""
        graph = self.graph
        graph.block.outputs = (
            [self.value(result)] if type_of(result) is not NONE or isinstance(result, Value) else [None]
        )
        for key, (state, _, _) in self.accessors.items():
            state.new = self.value(self.root_fields.bound[key], state.value.type)
        return Functional().run(graph).check()


_NONE_OF = {
    "List": "types match the types of the given list elements",
    "Dict": "dict types can hold the types of the given keys and values",
}


def _words(node):
    names = {
        ast.Lambda: "Lambdas", ast.Yield: "Generators (yield)", ast.FunctionDef: "Functions inside functions",
        ast.ClassDef: "Classes inside functions", ast.Try: "try statements", ast.Set: "Sets", ast.Global: "globals",
        ast.Import: "Imports inside functions", ast.ImportFrom: "Imports inside functions", ast.Await: "await",
        ast.Match: "match statements", ast.AsyncFor: "async loops",
        ast.NamedExpr: "Assignments inside expressions (:=)", ast.GeneratorExp: "Generator expressions here",
        ast.Nonlocal: "nonlocal names", ast.SetComp: "Sets", ast.AsyncFunctionDef: "async functions",
    }  # fmt: skip
    return names.get(type(node), type(node).__name__)
