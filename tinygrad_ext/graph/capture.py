"""The level that writes a program down as a graph while it runs.

It is an observer that carries: the user's tensors are carried values, each a window on a root (aliases.py), and of
what is called besides (factories, parameters, tensors from outside) it is told as an observer. Every op is computed on
the example too, so sizes that hang on data are known, and what Python reads of a size is a `Symbol`. Composites are
opened. An op that writes becomes the op that computes and a new value of the root. Gradients are made by derive.py
from what was written down, under this same level, so what a rule calls is in the graph like anything else.

Rejected: running on meta tensors (ops whose size depends on data could not be captured); recording what eager autograd
does below (its nodes keep sizes as numbers, so the graph would hold for one batch size); handing out the real tensors
and finding them again by identity (nobody could notice that Python reads one).
"""

import gc
from collections import namedtuple
from contextlib import contextmanager

from tinygrad_ext.core.call.levels import OpForm, operation, user_line
from tinygrad_ext.core.call.modes import is_grad_enabled, without_grad
from tinygrad_ext.core.call.op_tables import ops
from tinygrad_ext.core.data.dtype import device
from tinygrad_ext.core.data.random import default_generator
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad.methods import hooks_of_leaf

from . import derive, indexing, reading, seeding, trees  # noqa: F401  seeding answers for generators
from .aliases import COMPUTED, Argument, Root, Step, Traced, share
from .aliases import CaptureError as CaptureError
from .carrying import Carrier
from .function_nodes import OnceEntry
from .graph import Graph
from .ir import State, Value, give_lines, replaced
from .operands import SQUEEZES, Operands, as_name
from .replay import Replay
from .signature import output_types, signature_of
from .symbols import Symbol
from .types import TENSOR
from .windows import Windows

# what may need a gradient of it: a tensor that the user sees, and what is done with the gradient that arrives
Leaf = namedtuple("Leaf", "tensor")


class Capture(Operands, Windows, Carrier):
    """Writes down what is called inside a `with`.

    Attributes:
        graph: what was written so far.
        tape: derive.Entry of each node that a gradient may flow through, in order.
    """

    sees_attributes = True

    def __init__(self, name="graph", name_of=None):
        """name_of: (path, kind) of a tensor from outside, None for what is no parameter and no buffer."""
        self.graph = Graph(name)
        self.block = self.graph.block
        self.name_of = name_of or (lambda tensor: None)
        self.roots = {}  # id of a tensor from outside -> its Traced
        self.raised = None  # name of an op that raised: where the program went on, its graph is that of this way alone
        self.generators = {}  # id of a generator -> [State, its value now, example]
        self.sizes = {}  # (id of a Value, dimension) -> Symbol
        self.guarded = set()
        self.frozen = None  # (block that alone may be written to in memory, whose it is)
        self.needs = set()  # ids of Values that gradients flow to
        self.detached = {}
        self.leaves = {}  # id of a Value -> tensor that the user sees
        self.tape = []
        self.told = {}  # name of an op -> derive.Told
        self.unknown = {}  # id of a Value -> why nobody knows a gradient of it
        self.hooks = {}  # id of a Value -> [(number, hook on its gradient)]
        self.followers = []  # (another name of what was written, what was written, the Value before)
        self.retained = {}  # id of a Value -> tensor whose .grad is filled though it is no leaf
        self.overwritten = {}  # id of a Value -> line that wrote to its memory where autograd does not see it
        self.based = 0, {}  # entries of the tape that were looked at, {id of a base: Values that show its memory}
        self.kept = []
        self.hollow = set()  # ids of Values that may be undefined when the graph runs, so nobody asks for their sizes
        self.of_sizes = {}  # Value of a tensor -> one that is known to have the same sizes
        self.sized = set()  # (id of an operand, id of a result) whose sizes are known to be the same
        self.lengths = {}  # id of a list -> how long it was where it was made
        self.joint = ""  # "forward", then "backward" where a graph is written down with its derivative
        self.repeats = None  # what is written down again there, see repeats.pyx
        self.arguments = {}  # id of a carried tensor that the program was given -> Argument
        self.alike = None  # where a program asks which tensors are one: id of one that it was given -> what it got
        self.names = {}  # id of a tensor from outside -> (path, kind), where name_of knows none
        self.returned = []  # (path in the result, State) of what the program returns after it wrote to it
        self.optimized = set()  # ids of parameters whose optimizers are known, so that their state is looked after
        self.reader = reading.Reader(self)

    def __repr__(self):
        return f"<capture of {self.graph.name}>"

    def __enter__(self):
        """Garbage in cycles is left alone meanwhile: what its finalizers compute is no part of the program."""
        super().__enter__()
        self.collects = gc.isenabled()
        gc.disable()
        return self

    def __exit__(self, *exc):
        if self.collects:
            gc.enable()
        super().__exit__(*exc)

    # ---- what the program is given ---------------------------------------------------------------------------------

    def argument(self, tree, name):
        """What the program gets for an argument: tensors and numbers are carried, words and truth values are as they
        are."""
        return trees.take_apart(self, tree, self.graph.input(as_name(name), trees.type_of_tree(tree)))

    def tensor_value(self, value, tensor):
        if self.alike is not None:
            value.hint = self.suspend(tensor.detach)
            if id(tensor) not in self.alike:
                known = self.name_of(tensor) is not None
                self.alike[id(tensor)] = tensor if known else self.new_argument(value, tensor)
            return self.alike[id(tensor)]
        return self.new_argument(value, tensor)

    def new_argument(self, value, tensor):
        shown = self.stand_for(Root(value, self.suspend(tensor.detach)), tensor.requires_grad)
        self.arguments[id(shown)] = Argument(shown, tensor, value.name)
        return shown

    def stand_for(self, root, requires_grad=False):
        value = root.value
        value.hint = root.example
        if requires_grad:
            self.needs.add(id(value))
        shown = self.show(Traced(root))
        if requires_grad:
            self.leaves[id(value)] = shown
            root.leaf = Leaf(shown)
        return shown

    leaf = Leaf

    def outside(self, tensor):
        """The Traced of a tensor that was there before: a parameter, a buffer, something closed over."""
        traced = self.roots.get(id(tensor))
        if traced is None:
            known = self.name_of(tensor) or self.names.get(id(tensor))
            name, kind = known or (f"constant.{len(self.roots)}", "constant")
            value = self.graph.know(self.graph.value(TENSOR, None, None, as_name(name)))
            state = State(name, kind, value)
            self.graph.state.append(state)
            traced = self.roots[id(tensor)] = Traced(Root(value, self.suspend(tensor.detach), None, state, tensor))
            value.hint = traced.example
            self.kept.append(tensor)
            if tensor.requires_grad:
                self.needs.add(id(value))
                self.leaves[id(value)] = tensor
                traced.root.leaf = Leaf(tensor)
                self.hooks[id(value)] = list(enumerate(hooks_of_leaf(tensor)[0]))
        return traced

    # ---- operations ------------------------------------------------------------------------------------------------

    def process(self, operation, args):
        if not isinstance(operation, OpForm):
            return self.reader.host(operation, args)
        if operation.reads:  # of a tensor from outside; those that are carried are asked for by read()
            answer = self.reader.read(args[0], operation.schema.name, args[1:])
            return self.reader.refuse(operation.schema.name) if answer is NotImplemented else answer
        rule = indexing.RULES.get(operation.name)
        if rule is not None:
            return self.resume(rule, self, *args)
        if operation.composite and operation.name not in derive.WHOLE:
            return self.of_elements(operation.op, args) if signature_of(operation.op.name).whole else NotImplemented
        if operation.kind == "functional":
            return self.compute_op(operation.op, args)
        target = args[0] if operation.kind == "inplace" else args[-1]
        if operation.op.record.view and operation.kind == "inplace":
            return self.move_window(target, operation.op, args)
        args = (self.seen_anew(target), *args[1:]) if operation.kind == "inplace" else args[:-1]
        result = self.resume(self.call, operation.op.name, *args)
        for to, new in zip(target, result) if isinstance(target, (tuple, list)) else ((target, result),):
            self.resume(self.assign, to, new, operation)
        return target

    def call(self, name, *args):
        """An op by name under this level, composite or not."""
        return operation(ops[name])(*args)

    def of_elements(self, op, args):
        """A composite that reads elements is one node: what it consists of hangs on them."""
        drawn = self.suspend(default_generator.get_state)
        made = self.compute_op(op, args)
        if not self.suspend(lambda: drawn.equal(default_generator.get_state())):
            self.suspend(default_generator.set_state, drawn)
            raise CaptureError(f"{op.name} reads elements and draws numbers, so it cannot be a node of a graph")
        return made

    def compute_op(self, op, args):
        """Write a functional op down; its results as the user sees them."""
        signature = signature_of(op.name)
        if signature.generator is not None:
            args = self.with_generator(op, args)
        i = signature.asks_grad
        if i is not None and i < len(args) and args[i] is True:
            return self.reader.read_requires_grad_(self.compute_op(op, (*args[:i], False, *args[i + 1 :])))
        if op.name in SQUEEZES:
            self.guard_rank(args[0], SQUEEZES[op.name](*args[1:]))
        lifted, examples = self.both(args)
        for i in signature.devices:
            if type(lifted[i]) is str:
                lifted[i] = examples[i] = device(lifted[i])
        if not is_grad_enabled():
            lifted = [self.without_grad(a) for a in lifted]
        for i in signature.writes:
            examples[i] = None if examples[i] is None else without_grad(examples[i].clone)  # of version 0
        try:
            results = without_grad(operation(op), *examples)
        except Exception:
            self.raised = op.name
            raise
        node = self.graph.make(
            self.block, COMPUTED.get(op.name, op.name), lifted, output_types(signature, lifted),
            line=user_line(), owner=str(op.record.owner),
        )  # fmt: skip
        for value, i in zip(node.outputs[len(signature.returns) :], signature.writes):
            if args[i] is not None and examples[i]._version:  # it was written to, which may hang on other arguments
                value.hint = examples[i]
                self.resume(self.replace, self.traced(args[i]), self.show(Traced(Root(value, examples[i]))))
        if signature.generator is not None:
            self.advance(args[signature.generator], node.outputs[-1])
        return self.results_of(op, node, args, results, signature.shares)

    def results_of(self, op, node, args, results, shares):
        if type(results) is Tensor:  # as nearly always
            value = node.outputs[0]
            value.hint = results
            if self.needs:
                derive.note(self, op, node, [value], [results], args)
            if not shares:
                return self.show(Traced(Root(value, results)))
            return self.result(op, value, args, results, None)
        single = isinstance(results, Tensor) or not isinstance(results, (tuple, list))
        returns = op.schema.returns
        in_list = not single and (returns[0].is_list or returns[0].type == "Any")
        row = [results] if single else results
        made = list(node.outputs[: len(row)])
        if in_list:
            if not isinstance(args[0], (tuple, list)):  # else there are as many as there
                self.guard_length(node.outputs[0], len(row), node.line)
            made = list(
                self.graph.make(
                    self.block, "prim::unpack", node.outputs[:1], (TENSOR,) * len(row), line=node.line
                ).outputs
            )
        for value, result in zip(made, row):
            value.hint = result
        derive.note(self, op, node, made, row, args)
        shown = [
            None if r is None else self.result(op, v, args, r, i if in_list else None)
            for i, (v, r) in enumerate(zip(made, row))
        ]
        if single:
            return shown[0]
        return shown if type(results) is list else tuple.__new__(type(results), shown)

    def result(self, op, value, args, example, index):
        """One result as the user sees it: a window on what it is a view of, else on memory of its own."""
        if not isinstance(example, Tensor):
            return Symbol(self, value, example, True)
        source = args[0] if args else None
        if not isinstance(source, Tensor) or not share(example, self.traced(source).example):
            return self.show(Traced(Root(value, example)))
        whole = self.traced(source)
        if op.record.view:
            step = Step(op.name, tuple(args[1:]), index)
            return self.show(Traced(whole.root, (*whole.path, step), value, example))
        # the tensor itself, as contiguous() gives it, or without its history
        path = (*whole.path, Step(op.name, (), None)) if op.name == "aten::detach" else whole.path
        return self.show(Traced(whole.root, path, value, example))

    @contextmanager
    def inside(self, block):
        """Write to another block meanwhile."""
        outer, self.block = self.block, block
        sizes, self.sizes = self.sizes, {}
        detached, self.detached = self.detached, {}
        known, self.of_sizes = self.of_sizes, dict(self.of_sizes)  # what a guard inside says holds there alone
        guarded, self.guarded = self.guarded, set(self.guarded)
        try:
            yield
        finally:
            self.block, self.sizes, self.detached, self.of_sizes = outer, sizes, detached, known
            self.guarded = guarded

    def replay_block(self, block, mapping):
        """Write the nodes of a block down again, with `mapping` for its inputs; the values that it yields."""
        for node in block.nodes:
            if node.blocks or node.op == "prim::isnot":  # what is known by now is followed
                mapping.update(zip(node.outputs, Replay(self).within(node, mapping)))
                continue
            args = replaced(node.args, mapping)
            if node.op.startswith("prim::"):
                new = self.graph.make(self.block, node.op, args, [v.type for v in node.outputs], None, node.blocks)
                for old, value in zip(node.outputs, new.outputs):
                    value.hint = old.hint
                    mapping[old] = value
                if node.op == "prim::once" and is_grad_enabled():
                    OnceEntry(new).note(self)
                continue
            shown = self.call(node.op, *[self.shown(a) for a in args])
            for old, made in zip(node.outputs, shown if isinstance(shown, (tuple, list)) else (shown,)):
                mapping[old] = self.lift(made)
        return replaced(tuple(block.outputs), mapping)

    def shown(self, a):
        """An argument of a node as an op is called with it."""
        if isinstance(a, Value):
            return self.show(Traced(Root(a, a.hint))) if isinstance(a.hint, Tensor) else Symbol(self, a, a.hint)
        return tuple([self.shown(x) for x in a]) if type(a) is tuple else a

    # ---- the end ---------------------------------------------------------------------------------------------------

    def finish(self, result, check=True):
        """The graph, checked, returning a result of the program: tensors and numbers in tuples, lists and dicts."""
        self.check_memory()
        self.finish_followers()
        self.graph.block.outputs = [trees.put_together(self, result)]
        for traced in self.roots.values():
            root = traced.root
            root.state.new = root.value
        self.finish_arguments(result)
        self.reader.finish()
        give_lines(self.graph.block)
        return self.graph.check() if check else self.graph

    def backward(self, outputs, seeds, create_graph, inputs):
        self.reader.backward(outputs, seeds or (None,) * len(outputs), create_graph, inputs)

    def gradients(self, outputs, inputs, seeds, create_graph, allow_unused):
        return self.reader.gradients(outputs, inputs, seeds or (None,) * len(outputs), create_graph, allow_unused)

    def read(self, value, name, args):
        return (self.reader.read if self.owns(value) else self.reader.read_outside)(value, name, args)

    def write(self, tensor, name, new):
        return self.reader.write(tensor, name, new)


def capture(function, name=None):
    """A function of the same arguments that returns its graph: `capture(f)(x, 2)`.

    Tensors and numbers, in tuples, lists and dicts too, are inputs; what the function uses besides is state. Under
    other levels, those that are entered within are what the graph is made of; it is written by the outermost.

    Raises:
        RuntimeError: the function reads elements of a tensor; the message tells the line.
        CaptureError: it does something that a graph cannot hold.
    """

    def run(*args):
        level = Capture(name or getattr(function, "__name__", "graph"))
        try:
            with level:
                return level.finish(function(*[level.argument(a, f"arg{i}") for i, a in enumerate(args)]))
        finally:
            level.reader.restore()

    return run
