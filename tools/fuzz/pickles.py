"""The pickle of a PyTorch file, opcode by opcode, with numbers and nesting that nobody would write."""

KINDS = {"Float": 4, "Double": 8, "Long": 8, "Char": 1, "Bool": 1, "Half": 2, "ComplexFloat": 8, "BFloat16": 2}
NUMBERS = (0, 1, 2, 3, 4, -1, 2**31, 2**32, 2**60, 2**61, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30)
NAMES = (
    ("torch._utils", "_rebuild_tensor_v2"), ("torch._utils", "_rebuild_tensor"), ("torch._utils", "_rebuild_tensor_v3"),
    ("torch._utils", "_rebuild_parameter"), ("torch._tensor", "_rebuild_from_type_v2"), ("torch", "Size"),
    ("torch", "device"), ("collections", "OrderedDict"), ("_codecs", "encode"), ("builtins", "eval"), ("os", "system"),
    ("torch", "float32"), ("torch.nn.parameter", "Parameter"),
)  # fmt: skip


def state(rng):
    """(pickle, {key of a storage: bytes}) of a dict of tensors; parts of it are wrong."""
    sizes, items = {}, []
    for key in range(rng.choice((1, 1, 2, 3))):
        sizes[str(key)] = rng.choice((0, 4, 16, 64, 96, 256))
        items.append(text(f"t{key}") + tensor(rng, key, sizes[str(key)]))
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        items.append(other(rng) + other(rng))
    body = b"}(" + b"".join(items) + b"u"
    if rng.random() < 0.1:
        at = rng.randrange(len(body))
        body = (
            body[:at] + bytes([rng.choice(b"()}]tulsdRbQhrq0.2NcJKMa\x85\x86\x87\x88\x94\x93\x8f\x90\x91")]) + body[at:]
        )
    return b"\x80\x02" + body + b".", sizes


def tensor(rng, key, size):
    """A call of `_rebuild_tensor_v2`, most often with one number that does not fit."""
    kind = rng.choice(list(KINDS))
    count = size // KINDS[kind]
    rows = rng.choice((1, 2))
    shape = rng.choice(([count], [rows, count // rows], [], [0, count], [1, 1, count]))
    strides, step = [], 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= max(n, 1)
    offset = 0
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        what = rng.randrange(5)
        if what == 0 and shape:
            shape[rng.randrange(len(shape))] = rng.choice(NUMBERS)
        elif what == 1 and strides:
            strides[rng.randrange(len(strides))] = rng.choice(NUMBERS)
        elif what == 2:
            offset = rng.choice(NUMBERS)
        elif what == 3:
            count = rng.choice(NUMBERS)
        else:
            extra = rng.randint(1, 66)
            shape, strides = shape + [1] * extra, strides + [rng.choice(NUMBERS)] * extra
    part = (
        b"(" + text("storage") + name("torch", kind + "Storage") + text(str(key)) + text("cpu") + whole(count) + b"tQ"
    )
    args = part + whole(offset) + ints(shape) + ints(strides) + rng.choice((b"\x88", b"\x89", b"N")) + dictionary()
    made = name("torch._utils", "_rebuild_tensor_v2") + b"(" + args + b"tR"
    if rng.random() < 0.15:
        made = name("torch._utils", "_rebuild_parameter") + b"(" + made + b"\x88" + dictionary() + b"tR"
    return made


def other(rng):
    """A value that is no tensor: plain, deeply nested, or a call of something."""
    chance = rng.random()
    if chance < 0.3:
        return rng.choice((whole(rng.choice(NUMBERS)), text("x"), b"N", b"\x88", ints([1, 2]), b"}", b"]"))
    if chance < 0.6:
        return nested(rng)
    arguments = b"".join(other(rng) for _ in range(rng.randint(0, 3)))
    return name(*rng.choice(NAMES)) + b"(" + arguments + b"t" + rng.choice((b"R", b"R", b"\x81", b"b", b"Q"))


def nested(rng):
    """Tuples in tuples, each holding the one before twice, by reference."""
    depth, index = rng.choice((3, 20, 40, 400, 3000)), rng.randrange(200)
    made = b"N"
    if rng.random() < 0.5:
        return b"(" * depth + made + b"t" * depth
    for level in range(depth):
        made += (
            b"r" + (1000 + index + level).to_bytes(4, "little") + b"j" + (1000 + index + level).to_bytes(4, "little")
        )
        made += b"\x86"
    return made


def text(value):
    """A str."""
    data = value.encode()
    return b"X" + len(data).to_bytes(4, "little") + data


def whole(value):
    """An int of any size."""
    return b"L%dL\n" % value


def ints(values):
    """A tuple of ints."""
    return b"(" + b"".join(map(whole, values)) + b"t"


def name(module, attribute):
    """A name that is looked up."""
    return f"c{module}\n{attribute}\n".encode()


def dictionary():
    """An empty OrderedDict, as the hooks of a tensor are written."""
    return name("collections", "OrderedDict") + b")R"
