"""Pickles as PyTorch writes them, made by hand: of names that need not exist, and of numbers that may be wrong."""

import pickle


class Name:
    """A class or function, named and not imported."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Call:
    """A call of a Name."""

    def __init__(self, fn, *args):
        self.fn, self.args = fn, args


class Reference(tuple):
    """A persistent id."""


def pickled(value):
    """value (made of plain values and the three above) as a pickle of protocol 2; None of it need exist."""
    return b"\x80\x02" + _opcodes(value) + b"."


def _opcodes(value):
    if isinstance(value, Name):
        return f"c{value.module}\n{value.name}\n".encode()
    if isinstance(value, Call):
        return _opcodes(value.fn) + _opcodes(value.args) + b"R"
    if isinstance(value, Reference):
        return _opcodes(tuple(value)) + b"Q"
    if type(value) is tuple:
        return b"(" + b"".join(map(_opcodes, value)) + b"t"
    if type(value) is list:
        return b"](" + b"".join(map(_opcodes, value)) + b"e"
    if type(value) is dict:
        return b"}(" + b"".join(_opcodes(k) + _opcodes(v) for k, v in value.items()) + b"u"
    return pickle.dumps(value, 2)[2:-1]


FLOATS = Reference(("storage", Name("torch", "FloatStorage"), "0", "cpu", 6))


def rebuilt(sizes, strides, offset, storage=FLOATS):
    """The pickle of a tensor over a storage."""
    fn = Name("torch._utils", "_rebuild_tensor_v2")
    return pickled(
        Call(fn, storage, offset, tuple(sizes), tuple(strides), False, Call(Name("collections", "OrderedDict")))
    )


LONGS = Reference(("storage", Name("torch", "LongStorage"), "0", "cpu", 10))
# layout, then (offset, sizes, strides) of each tensor of places over the numbers 0 to 9, and the size of the matrix
SPARSE = {
    "a place beyond its size": ("sparse_coo", (0, (2, 3), (3, 1)), (3, 5)),
    "2**40 places in the same memory": ("sparse_coo", (0, (2, 2**40), (1, 0)), (3, 5)),
    "one dimension too few": ("sparse_coo", (0, (2, 3), (3, 1)), (9,)),
    "rows that begin behind the first": ("sparse_csr", (1, (3,), (1,)), (0, (3,), (1,)), (2, 5)),
    "columns beyond the last": ("sparse_csr", (0, (3,), (1,)), (5, (2,), (1,)), (2, 5)),
    "2**40 rows in the same memory": ("sparse_csr", (0, (2**40 + 1,), (0,)), (0, (3,), (1,)), (2**40, 5)),
    "no places of which there are 10**12": ("sparse_coo", (0, (0, 10**12), (0, 0)), (0,)),
    "places that lie on each other": ("sparse_coo", (0, (2, 30), (1, 0)), (3, 5)),
    "blocks": ("sparse_bsr", (0, (3,), (1,)), (0, (3,), (1,)), (2, 5)),
}


def sparse(layout, *places, own=None):
    """The pickle of a sparse tensor, its values floats over the same memory. own: attributes that it is given."""
    *places, size = places
    hooks = Call(Name("collections", "OrderedDict"))
    fn, count = Name("torch._utils", "_rebuild_tensor_v2"), places[-1][1][-1]
    tensors = [Call(fn, LONGS, offset, sizes, strides, False, hooks) for offset, sizes, strides in places]
    values = Call(fn, FLOATS, 0, (count,), (0,), False, hooks)
    kind = Call(Name("torch.serialization", "_get_layout"), f"torch.{layout}")
    rebuild, given = Name("torch._utils", "_rebuild_sparse_tensor"), (kind, (*tensors, values, size))
    if own is None:
        return pickled(Call(rebuild, *given))
    return pickled(Call(Name("torch._tensor", "_rebuild_from_type_v2"), rebuild, Name("torch", "Tensor"), given, own))


def nest(levels, leaf=b")"):
    """Opcodes of a tuple of two, each half the tuple of the level below: 2**levels leaves in 5 bytes a level."""
    return leaf + b"".join(b"q" + bytes([i]) + b"h" + bytes([i]) + b"\x86" for i in range(levels))
