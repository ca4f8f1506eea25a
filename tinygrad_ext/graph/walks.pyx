# cython: language_level=3, boundscheck=True, wraparound=True
"""What passes ask of graphs. Compiled because each pass walks over all nodes and reads what they take and give."""
from .nodes cimport VALUE, args_of, blocks_of, op_of, outputs_of

from . import primitives
from .signature import signature_of
from .values import replaced, used_values, values_in


cdef class Facts:
    """What signatures say of ops, which is looked up once for each op in a walk."""

    def __cinit__(self):
        self.found = {}

    cdef object of(self, str op):
        found = self.found.get(op, self)
        if found is self:
            found = self.found[op] = None if op.startswith("prim::") else signature_of(op)
        return found

    cdef bint has_effect(self, node) except -1:
        signature = self.of(op_of(node))
        if signature is not None:
            return (signature.inplace or signature.draws or not outputs_of(node)
                    or (signature.generator is not None and type(args_of(node)[signature.generator]) is not VALUE))
        op = op_of(node)
        if op in primitives.CONTROL:
            if op == "prim::Loop":
                return True
            for block in blocks_of(node):
                for inner in block.walk():
                    if self.has_effect(inner):
                        return True
            return False
        return bool(getattr(primitives.TABLE.get(op), "effect", False))

    cdef bint is_random(self, node) except -1:
        signature = self.of(op_of(node))
        return signature is not None and signature.random

    cdef bint may_share(self, node) except -1:
        signature = self.of(op_of(node))
        return signature is None or signature.shares


def is_op(node):
    return not op_of(node).startswith("prim::")


def is_random(node):
    """Whether a node draws, or gives what nobody has set."""
    return Facts().is_random(node)


def has_effect(node):
    """Whether a node does more than give its outputs: it draws from the default generator, prints, raises."""
    return Facts().has_effect(node)


def may_share(node):
    """Whether an output may show the memory of an argument: all but ops that are known to make their own."""
    return Facts().may_share(node)


def blocks(graph):
    """All blocks, inner ones before the block that holds them."""
    cdef list found = []
    add_blocks(graph.block, found)
    return found


cdef int add_blocks(block, list found) except -1:
    for node in block.nodes:
        for inner in blocks_of(node):
            add_blocks(inner, found)
    found.append(block)
    return 0


def walked(block):
    """All nodes of a block and those within, each before what it holds."""
    cdef list found = []
    add_nodes(block, found)
    return found


cdef int add_nodes(block, list found) except -1:
    for node in block.nodes:
        found.append(node)
        for inner in blocks_of(node):
            add_nodes(inner, found)
    return 0


def ops_in(block):
    """The names of the ops of all nodes of a block and those within."""
    return {op_of(node) for node in walked(block)}


def readers(block):
    """{id of a Value: nodes that read it, None for what a block gives}, in a block and those within."""
    cdef dict found = {}
    for node in walked(block):
        add_reader(args_of(node), node, found)
        for inner in blocks_of(node):
            add_reader(inner.outputs, None, found)
    add_reader(block.outputs, None, found)
    return found


def uses(graph):
    """{id of a Value: nodes that read it}; None stands for what a block, or the graph, returns or writes back."""
    cdef dict found = readers(graph.block)
    for state in graph.state:
        add_reader((state.new,), None, found)
    return found


def read_in(block):
    """Ids of the values that what a block gives, or does, follows from."""
    cdef set read = set()
    cdef Facts facts = Facts()
    add_ids(block.outputs, read)
    for node in reversed(block.nodes):
        needed = False
        for value in outputs_of(node):
            if id(value) in read:
                needed = True
                break
        if needed or facts.has_effect(node):
            for value in used_values(node):
                read.add(id(value))
    return read


cdef int add_reader(args, node, dict found) except -1:
    for value in values_in(args):
        key = id(value)
        readers = found.get(key)
        if readers is None:
            found[key] = [node]
        else:
            (<list>readers).append(node)
    return 0


def replace(graph, dict mapping):
    """Put other values in the place of some everywhere. mapping: {Value: Value or constant}."""
    if not mapping:
        return
    mapping = {old: last(new, mapping) for old, new in mapping.items()}
    for block in blocks(graph):
        for node in block.nodes:
            if holds(args_of(node), mapping):
                node.args = tuple([replaced(a, mapping) for a in args_of(node)])
        block.outputs = [replaced(a, mapping) for a in block.outputs]
    for state in graph.state:
        if state.written:
            state.new = replaced(state.new, mapping)


cdef bint holds(args, dict mapping) except -1:
    """Whether something that is replaced stands in arguments."""
    for a in args:
        if type(a) is VALUE:
            if a in mapping:
                return True
        elif type(a) is tuple or type(a) is list or type(a) is slice:
            return True
    return False


cdef object last(new, dict mapping):
    while type(new) is VALUE and new in mapping:
        new = mapping[new]
    return new


def shown(graph):
    """Ids of values whose memory a result of the graph may show: what is returned, and what views of it are taken of.

    Two such values may not become one, because who writes to one result would change the other.
    """
    cdef set found = set()
    cdef list row = blocks(graph)
    cdef Facts facts = Facts()
    for block in row:
        add_ids(block.outputs, found)
    for state in graph.state:
        add_ids((state.new,), found)
    for block in reversed(row):
        for node in reversed(block.nodes):
            for value in outputs_of(node):
                if id(value) in found:
                    if facts.may_share(node):
                        add_ids(args_of(node), found)
                    break
    return found


cdef int add_ids(args, set found) except -1:
    for value in values_in(args):
        found.add(id(value))
    return 0
