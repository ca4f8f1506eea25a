"""Calls ops by their names with arguments that make no sense. Run as a program: it must end, with exceptions only.

    python tests/helpers/nonsense.py SEED CALLS [op ...]

Every call is made up from the op's schema: tensors of any rank, dtype, layout and device, empty ones too, numbers out
of all proportion, lists of wrong lengths. What a call is goes to stdout before it is made: the last line names a crash.
"""

import random
import resource
import sys
import warnings

import tinygrad_ext as tg
from tinygrad_ext.registry import ops

DTYPES = [
    tg.bool,
    tg.uint8,
    tg.int8,
    tg.int16,
    tg.int32,
    tg.int64,
    tg.float16,
    tg.bfloat16,
    tg.float32,
    tg.float64,
    tg.complex64,
    tg.complex128,
]
USUAL = [tg.float32, tg.float32, tg.float64, tg.int64, tg.bool]
SIZES = [0, 1, 1, 2, 3, 4, 7]
INTS = [-(2**63), -(2**31) - 1, -7, -2, -1, 0, 1, 1, 2, 2, 3, 4, 5, 2**31, 2**62, 2**63 - 1]
FLOATS = [-1.0, 0.0, 0.5, 1.0, 1e308, float("inf"), float("nan")]
ROOM = 2 << 30  # bytes a call may ask for


class Calls:
    """Arguments for one call, which like to have a shape in common: nonsense that is nearly right gets further."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.shape = [self.random.choice(SIZES) for _ in range(self.random.randint(0, 4))]

    def tensor(self):
        """A tensor: often of the common shape, often of a usual dtype."""
        r = self.random
        shape = list(self.shape)
        if r.random() < 0.5:
            shape = [r.choice(SIZES) for _ in range(r.randint(0, 4))]
        dtype = r.choice(USUAL if r.random() < 0.7 else DTYPES)
        if r.random() < 0.05:
            return tg.empty(shape, dtype=dtype, device="meta")
        t = tg.tensor([r.choice((-3, -1, 0, 1, 2, 3, 5)) for _ in range(tg.Size(shape).numel())], dtype=tg.int64)
        t = t.reshape(shape).to(dtype)
        if r.random() < 0.2 and t.dim() > 1:
            t = t.transpose(0, -1)
        if r.random() < 0.1 and t.dim() and t.shape[-1]:
            t = t[..., :1].expand(t.shape)
        return t

    def int(self):
        """A number that may mean anything."""
        return self.random.choice(INTS)

    def ints(self):
        """A list of ints: the common shape, or anything of any length."""
        r = self.random
        if r.random() < 0.4:
            return list(self.shape)
        pool = SIZES if r.random() < 0.7 else INTS
        return [r.choice(pool) for _ in range(r.choice((0, 1, 1, 2, 2, 3, 4, 5, 70)))]

    def index(self):
        """An index of ints, slices, None and Ellipsis."""
        r = self.random
        number = lambda: r.choice((None, self.int()))
        parts = [
            lambda: self.int(),
            lambda: slice(number(), number(), number()),
            lambda: None,
            lambda: Ellipsis,
            lambda: "x",
            lambda: self.tensor(),
        ]
        made = tuple(r.choice(parts)() for _ in range(r.choice((0, 1, 1, 2, 3, 66))))
        return made[0] if len(made) == 1 else made

    def argument(self, arg):
        """A value for one argument of a schema."""
        r = self.random
        if arg.optional and r.random() < 0.3:
            return None
        spelling = arg.spelling.rstrip("?")
        if spelling == "Any":
            return r.choice((self.index, self.int, self.ints))()
        if arg.is_list:
            kind = spelling.split("[")[0].rstrip("?")
            if kind == "Tensor":
                return [self.tensor() if r.random() < 0.9 else None for _ in range(r.choice((0, 1, 2, 5, 70)))]
            if kind == "bool":
                return [r.random() < 0.5 for _ in range(arg.size or 2)]
            return self.ints()
        made = {
            "Tensor": self.tensor,
            "int": self.int,
            "bool": lambda: r.random() < 0.5,
            "float": lambda: r.choice(FLOATS),
            "Scalar": lambda: r.choice((*INTS, *FLOATS, 1j)),
            "ScalarType": lambda: r.choice(DTYPES),
            "str": lambda: r.choice(("mean", "sum", "none", "")),
            "Device": lambda: r.choice(("cpu", "meta")),
        }.get(spelling.split("(")[0])
        return None if made is None else made()


def name_of(op):
    """The path under which an op is called: ops.aten.add.Tensor."""
    space, name = op.name.split(".")[0].split("::")
    return getattr(getattr(getattr(tg.ops, space), name), op.schema.overload or "default")


def show(value):
    """A value in a line: tensors by their geometry."""
    if isinstance(value, tg.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {value.stride()} {value.device}"
    return f"[{', '.join(map(show, value))}]" if isinstance(value, list) else repr(value)


def touch(result):
    """Read all of a result: a tensor over memory that is not there shows here."""
    for t in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(t, tg.Tensor) and t.device.type == "cpu" and t.numel() < 1 << 20:
            t.clone()


def call(op, seed):
    """One call; whether it ran through."""
    calls = Calls(seed)
    values = {a.name: calls.argument(a) for a in op.schema.args}
    print(op.name, seed, ", ".join(f"{name}={show(v)}" for name, v in values.items()), flush=True)
    keywords = {a.name: values[a.name] for a in op.schema.args if a.kwarg_only}
    function = name_of(op)
    try:
        touch(function(*(values[a.name] for a in op.schema.args if not a.kwarg_only), **keywords))
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, MemoryError, OverflowError):
        return False
    return True


def main(seed, calls, *names):
    """All private ops, or those named."""
    warnings.simplefilter("ignore")
    chosen = names or [name for name in ops if name.split("::")[1].startswith("_")]
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    ran = sum(call(ops[name], f"{seed}/{name}/{k}") for name in chosen for k in range(int(calls)))
    print("ended:", ran, "of", len(chosen) * int(calls), "calls returned", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
