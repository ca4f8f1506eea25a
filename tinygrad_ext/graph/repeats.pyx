# cython: language_level=3, boundscheck=True, wraparound=True
"""What a call wrote down once is written down again without running the Python code that said it.

A graph with its derivative is made by calling ops and the rules of records under a capture, and a model calls the same
ones again and again for tensors of the same kind. The nodes that such a call adds are kept as a `Piece`: a later call
for operands of the same dtypes, sizes and strides adds them with its own operands. What they make has the examples of
the first time: these have no memory, and nothing writes to one.

A piece lives as long as its capture. Rejected: pieces for other sizes, or for all captures of the process. What Python
code looks at besides its operands (strides, settings, the default dtype) would have to be known for each rule.
"""

from contextlib import suppress

from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from tinygrad_ext.core.call.levels cimport OpForm
from tinygrad_ext.core.data.tensor cimport Carried, Tensor
from .nodes cimport VALUE, Names, graph_node, hint_of, new_node, there, type_of

from tinygrad_ext.core.call.levels import operation
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data import dtype as dtypes

from . import derive
from .aliases import Root, Traced
from .items import Items
from .signature import signature_of
from .symbols import Symbol
from .types import TENSOR

# of numbers only: given the same operands they give the same
cdef set _NUMBERS = {
    f"prim::{word}"
    for word in [
        *("shape", "size", "len", "eq", "ne", "lt", "le", "gt", "ge", "guard"),
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs"),
    ]
}
cdef set _PLAIN = {int, bool, str, type(None), dtypes.dtype, dtypes.device, dtypes.layout, dtypes.memory_format}


cdef class Ref:
    """A place in the row of values of a piece: its operands, then what its steps make."""
    cdef Py_ssize_t at

    def __cinit__(self, Py_ssize_t at):
        self.at = at


cdef class Step:
    """One node of a piece."""
    cdef object node            # as it was written down
    cdef OpForm run             # the op, None for a primitive
    cdef tuple args             # with Refs
    cdef bint plain             # no Ref stands in a tuple
    cdef bint size, guard       # it is a prim::size, a prim::guard
    cdef tuple types, hints     # of what it makes
    cdef list flows             # numbers of results that may need a gradient
    cdef bint noted             # the tape is told of it


cdef class Piece:
    cdef list steps
    cdef object results


class Unfit(Exception):
    """A call that no piece is made of."""


cdef class Repeats:
    """The pieces of one capture."""
    cdef object capture
    cdef dict pieces, numbers, examples
    cdef readonly Py_ssize_t looked, repeated   # calls that a piece was made of, or tried, and that one was written for
    cdef public dict noted      # while a call is looked at: {node that the tape was told of: the nodes that this added}

    def __cinit__(self, capture):
        # numbers: of the kinds that operands have; examples: {id of one: (it, number of its kind)}
        self.capture, self.pieces, self.numbers, self.examples, self.noted = capture, {}, {}, {}, None

    def key(self, what, row):
        """(key, operands) of a call of `what` with a row of Values, carried values and constants in tuples; None where
        it is like no other."""
        cdef list operands = [], kinds = [what, is_grad_enabled()]
        if self.capture.overwritten or self.noted is not None:
            return None
        try:
            for a in row:
                self.add_kind(a, operands, kinds)
        except Unfit:
            return None
        return tuple(kinds), operands

    cdef int add_kind(self, object a, list operands, list kinds) except -1:
        cdef Py_ssize_t i
        cdef type kind
        if type(a) is Carried and (<Carried>a).level is self.capture:
            a = self.value_of(a)
        kind = type(a)
        if kind is VALUE:
            for i in range(len(operands)):
                if operands[i] is a:
                    kinds.append(-1 - i)
                    return 0
            operands.append(a)
            kinds.append(self.kind_of(a))
        elif kind in _PLAIN:
            kinds.append(kind)
            kinds.append(a)
        elif kind is float or kind is complex:
            kinds.append(kind)
            kinds.append(repr(a))
        elif kind is tuple or kind is list:
            self.add_kinds(kind, a, operands, kinds)
        elif kind is Items and a.type is None:
            self.add_kinds(kind, a.parts, operands, kinds)
        else:
            raise Unfit
        return 0

    cdef int add_kinds(self, type kind, parts, list operands, list kinds) except -1:
        kinds.append(kind)
        kinds.append(len(parts))
        for x in parts:
            self.add_kind(x, operands, kinds)
        return 0

    cdef object value_of(self, Carried a):
        """The Value behind a carried value of the capture."""
        window = a.value
        return window.value if window.version == window.root.version else self.capture.traced(a).value

    cdef object kind_of(self, object value):
        """A number for what calls see of a Value: those of one kind have the same."""
        capture, hint = self.capture, hint_of(value)
        key = id(value)
        if key in capture.hollow or key in capture.unknown:
            raise Unfit
        cdef tuple known = self.examples.get(id(hint))
        if known is None:
            if type(hint) is Tensor:
                kind = capture.suspend(_geometry, hint)     # which would be asked about each size that is read
            elif type(hint) is int or type(hint) is float or type(hint) is bool:
                kind = type(hint), repr(hint)
            else:
                raise Unfit
            known = self.examples[id(hint)] = hint, self.numbers.setdefault(kind, 2 * len(self.numbers))
        number = known[1] if type_of(value) is TENSOR else self.numbers.setdefault((known[1], type_of(value)), 2 * len(self.numbers))
        return number + (key in capture.needs)

    def call(self, key, function, told):
        """What `function()` gives, as a tree of Values by `told`; the nodes are written down, by a piece where there is
        one. Returns (tree, whether it was a piece); without one the tree is as the function gave it."""
        found, operands = key
        piece = self.pieces.get(found, False)
        if piece:
            self.repeated += 1
            return self.write(piece, operands), True
        if piece is not False:
            return function(), False
        self.looked += 1
        return self._look(found, operands, function, told), False

    # ---- looking ---------------------------------------------------------------------------------------------------

    def _look(self, found, operands, function, told):
        """What `function()` gives; what it writes down is a piece from now on, or None."""
        capture, self.noted = self.capture, {}
        nodes, start = capture.block.nodes, len(capture.block.nodes)
        outside, tape = _outside(capture), len(capture.tape)
        guarded, capture.guarded = capture.guarded, set()  # else a guard that is there already would not be seen
        try:
            result = function()
        finally:
            noted, self.noted = self.noted, None
            twice = guarded & capture.guarded
            capture.guarded |= guarded
        self.pieces[found], more = None, len(capture.tape) - tape
        if outside == _outside(capture) and (not more or more == len(noted)):
            with suppress(Unfit):
                self.pieces[found] = self._piece(nodes[start:], operands, noted, told(result))
        if twice:
            nodes[start:] = [n for n in nodes[start:] if n.op != "prim::guard" or id(n.args[0]) not in twice]
        return result

    def _piece(self, nodes, operands, noted, results):
        """The Piece of nodes that were written down. noted: see above."""
        places, steps = {v: i for i, v in enumerate(operands)}, []
        left_out = {node for added in noted.values() for node in added}
        for node in nodes:
            if node not in left_out:
                self._step(node, places, steps, node in noted)
        cdef Piece piece = Piece()
        piece.steps, piece.results = steps, _refs(results, places)
        return piece

    def _step(self, node, places, steps, noted):
        if node.blocks:
            raise Unfit
        for a in node.args:  # a size that was asked for before
            if type(a) is VALUE and a not in places and a.node is not None and a.node.op == "prim::size":
                self._step(a.node, places, steps, False)
        cdef Step step = Step()
        step.node, step.args, step.run = node, tuple([_refs(a, places) for a in node.args]), None
        step.hints = tuple([v.hint for v in node.outputs])
        if not node.op.startswith("prim::"):
            signature = signature_of(node.op)
            if signature.writes or signature.inplace or signature.generator is not None:
                raise Unfit
            if not all([type(h) is Tensor for h in step.hints]) or any([v.type is not TENSOR for v in node.outputs]):
                raise Unfit
            step.run = operation(signature.op)
        elif node.op not in _NUMBERS or any([isinstance(h, Tensor) for h in step.hints]):
            raise Unfit
        step.plain = not any([type(a) is tuple for a in step.args])
        step.size, step.guard = node.op == "prim::size", node.op == "prim::guard"
        step.types, step.noted = tuple([v.type for v in node.outputs]), noted
        step.flows = [i for i, v in enumerate(node.outputs) if id(v) in self.capture.needs]
        steps.append(step)
        for value in node.outputs:
            places[value] = len(places)

    # ---- writing ---------------------------------------------------------------------------------------------------

    cdef object write(self, Piece piece, list operands):
        """The results of a piece for these operands, Values; its nodes are written down."""
        cdef list values = list(operands), nodes = <list>self.capture.block.nodes
        cdef Names graph = self.capture.graph
        cdef dict sizes = self.capture.sizes
        cdef set needs = self.capture.needs, guarded = self.capture.guarded
        cdef Step step
        cdef tuple args, outputs
        cdef Py_ssize_t i
        for step in piece.steps:
            args = _put(step.args, values) if step.plain else <tuple>_given(step.args, values)
            if step.size and type(args[1]) is int:
                known = sizes.get((id(args[0]), args[1]))
                if known is not None:       # it was asked for before
                    values.append(known.value)
                    continue
            if step.guard:
                if id(args[0]) in guarded:
                    continue
                guarded.add(id(args[0]))
            node = _like(step.node, args)
            outputs = PyTuple_New(len(step.types))
            for i in range(len(step.types)):
                value = graph.another(step.types[i], node, step.hints[i])
                Py_INCREF(value)
                PyTuple_SET_ITEM(outputs, i, value)
                values.append(value)
            node.outputs = outputs
            nodes.append(node)
            if step.size:
                sizes[id(args[0]), args[1]] = Symbol(self.capture, outputs[0], step.hints[0])
            for i in step.flows:
                needs.add(id(outputs[i]))
            if step.noted and self.capture.joint == "forward":
                derive.enter(self.capture, step.run.op, node, list(outputs), self.capture.told[node.op])
        return _given(piece.results, values)

    def shown(self, tree):
        """A tree of Values as rules take it."""
        if type(tree) is VALUE:
            return self.capture.show(Traced(Root(tree, tree.hint)))
        return tuple([self.shown(x) for x in tree]) if type(tree) is tuple else tree

    def lifted(self, tree):
        """A tree of carried values as Values."""
        if type(tree) is Carried and (<Carried>tree).level is self.capture:
            return self.value_of(tree)
        if isinstance(tree, (tuple, list)):
            return tuple([self.lifted(x) for x in tree])
        if tree is None:
            return None
        raise Unfit

    def again(self, what, function, *row):
        """function(*row) of carried values."""
        key = self.key(what, row)
        if key is None:
            return function(*row)
        found, repeated = self.call(key, lambda: function(*row), self.lifted)
        return self.shown(found) if repeated else found


def _outside(capture):
    """How many tensors from outside there are, and which values generators are at."""
    return len(capture.roots), [id(found[1]) for found in capture.generators.values()]


def _geometry(hint):
    return hint.dtype, hint.device, tuple(hint.shape), hint.stride(), hint.storage_offset()


cdef object _like(object old, tuple args):
    """A node of the same op and line as another, which takes part in no derivative yet."""
    cdef graph_node *n = <graph_node *>old
    return new_node(there(n.op), args, (), there(n.line), there(n.version), there(n.owner))


def _refs(a, places):
    if type(a) is VALUE:
        if a not in places:
            raise Unfit
        return Ref(places[a])
    if type(a) is tuple or type(a) is list:
        return tuple([_refs(x, places) for x in a])
    if type(a) in _PLAIN or type(a) is float or type(a) is complex:
        return a
    raise Unfit


cdef tuple _put(tuple args, list values):
    """Arguments with what their Refs stand for."""
    cdef Py_ssize_t i
    cdef tuple made = PyTuple_New(len(args))
    for i in range(len(args)):
        a = args[i]
        if type(a) is Ref:
            a = values[(<Ref>a).at]
        Py_INCREF(a)
        PyTuple_SET_ITEM(made, i, a)
    return made


cdef object _given(object a, list values):
    if type(a) is Ref:
        return values[(<Ref>a).at]
    return tuple([_given(x, values) for x in a]) if type(a) is tuple else a
