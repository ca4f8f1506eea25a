"""Writes calls of ops and their results as cases for tests/c/table.c, as `python -m tests.helpers.c_cases FILE`.

A program of its own because it computes products without a library, as the program in C does: TINYGRAD_EXT_BLAS=own.
"""

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import tinygrad_ext as tg
from tinygrad_ext.core.loops import blas
from tinygrad_ext.graph.aliases import COMPUTED  # views by a bit, of which programs in C compute copies
from tinygrad_ext.native import updates
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.registry import ops
from tinygrad_ext.registry.compiler import default_of
from tinygrad_ext.testing import compare, sweep

NONE, TENSOR, TENSORS, INT, INTS, FLOAT, FLOATS, NUMBER, STRING, POINTER, DTYPE = range(11)
IS_BOOL, IS_INT, IS_FLOAT, IS_COMPLEX = range(4)
KERNEL, LOOP, UNSET = range(3)
NO_NUMBER = -(2**63)
FEW = 4  # samples of each op in each dtype


def number(*values):
    return struct.pack(f"={len(values)}q", *values)


def text(words):
    data = words.encode()
    return number(len(data)) + data


def tensor(t):
    if t is None:
        return number(-1, 0)
    head = number(t.dtype.id, t.dim(), *t.shape)
    if not t.numel():
        return head
    flat = tg.empty(t.numel(), dtype=t.dtype).copy_(t.detach().reshape(-1))
    return head + bytes(flat.view(tg.uint8).numpy())


def scalar(value):
    """A tgx_scalar."""
    if value is None:
        return struct.pack("=ddqq", 0, 0, 0, 0)
    if isinstance(value, tg.Tensor):
        value = value.item()
    z = complex(value)
    whole = int(value) if not isinstance(value, complex) and abs(z.real) < 9.2e18 and z == z else 0
    return struct.pack("=ddqq", z.real, z.imag, whole, 1)


def kind_of(value):
    if isinstance(value, bool):
        return IS_BOOL
    return IS_INT if isinstance(value, int) else IS_COMPLEX if isinstance(value, complex) else IS_FLOAT


def listed(arg, given):
    """A list argument."""
    if arg.type == "Tensor":
        return number(TENSORS, 0, len(given)) + b"".join(tensor(t) for t in given)
    items = list(given) if isinstance(given, (list, tuple)) else [given] * max(arg.size or 0, 1)
    if arg.type == "float":
        return number(FLOATS, 0, len(items)) + struct.pack(f"={len(items)}d", *map(float, items))
    return number(INTS, 0, len(items)) + number(*map(int, items))


def value(arg, given, state):
    """One argument as a tgx_value; None for what has no form in C."""
    if arg.type == "Generator":
        return number(POINTER, 0, 0) + state
    if given is None:
        return number(NONE, 0, 0)
    if arg.is_list:
        return listed(arg, given)
    if isinstance(given, tg.Tensor) and arg.type == "Tensor":
        return number(TENSOR, 0, 0) + tensor(given)
    if arg.type in ("Scalar", "number", "complex") or arg.type == "Tensor":
        return number(NUMBER, kind_of(given), 0) + scalar(given)
    if arg.type == "float":
        return number(FLOAT, 0, 0) + struct.pack("=d", float(given))
    if arg.type == "str":
        return number(STRING, 0, 0) + text(given)
    if arg.type == "Any" and isinstance(given, (list, tuple)):
        return number(INTS, 0, len(given)) + number(*(NO_NUMBER if n is None else n for n in given))
    if arg.type == "Device":
        return number(INT, 0, 0, 0)
    number_of = getattr(given, "id", getattr(given, "number", given))
    return number(DTYPE if arg.type == "ScalarType" else INT, 0, 0, int(number_of))


def bound(op, sample):
    """A sample's arguments in the order of the schema."""
    names = [a.name for a in op.schema.args]
    given = dict(zip(names, sample.args)) | sample.kwargs
    if len(sample.args) > len(names):
        given[names[-1]] = list(sample.args[len(names) - 1 :])
    return [given[a.name] if a.name in given else default_of(a) for a in op.schema.args]


def kernel_case(op, sample):
    """A call of a kernel, or None when Python is needed to say what it does."""
    args = bound(op, sample)
    if any(isinstance(a, tg.Tensor) and a.requires_grad for a in args):
        return None
    tg.manual_seed(0)  # as sweep.call does
    state = bytes(tg.get_rng_state().numpy())
    parts = [value(arg, given, state) for arg, given in zip(op.schema.args, args)]
    whole = sweep.function(op) if op.record.determined else lambda *a, **k: sweep.call(op, a, k)
    results = compare.flatten(whole(*sample.args, **sample.kwargs))
    case = (
        text(op.record.kernel)
        + number(UNSET if "unset" in (op.record.tags or "").split() else KERNEL)
        + text(op.title)
        + number(len(parts), len(op.schema.returns))
        + b"".join(parts)
    )
    return case + number(len(results)) + b"".join(tensor(t) for t in results) + number(0)


def loop_case(op, sample):
    """A call of a pointwise loop, or None where operands are converted before it."""
    args = bound(op, sample)
    fixed = op.record.inputs or {}
    tensors = [(a.name, given) for a, given in zip(op.schema.args, args) if a.type == "Tensor"]
    dtypes = {t.dtype for name, t in tensors if isinstance(t, tg.Tensor) and name not in fixed}
    if len(dtypes) != 1 or any(t is None for _, t in tensors):
        return None
    (dtype,) = dtypes
    if str(dtype).removeprefix("torch.") not in op.loop_dtypes:
        return None
    operands = [t if isinstance(t, tg.Tensor) else tg.tensor(t, dtype=dtype) for _, t in tensors]
    result = sweep.call(op, sample.args, sample.kwargs)
    aux = b""
    scalars = [(a, given) for a, given in zip(op.schema.args, args) if a.type != "Tensor"]
    for arg, given in scalars:
        if isinstance(given, complex):
            return None
        choices = (op.record.choices or {}).get(arg.name, "").split()
        aux += scalar(choices.index(given) if isinstance(given, str) else given)
    head = text(op.name) + number(LOOP, dtype.id, len(operands), len(scalars))
    return head + b"".join(map(tensor, operands)) + aux + tensor(result)


def floats(*values):
    return b"".join(number(FLOAT, 0, 0) + struct.pack("=d", v) for v in values)


def tensors(given):
    return number(NONE, 0, 0) if given is None else number(TENSORS, 0, len(given)) + b"".join(map(tensor, given))


def step_case(kernel, title, lists, changed, options, update):
    """A fused update: lists of tensors that are changed, floats and switches. `update` does it in eager mode."""
    switches = [o for o in options if isinstance(o, bool)]
    numbers = floats(*[o for o in options if not isinstance(o, bool)])
    parts = b"".join(map(tensors, lists)) + numbers + b"".join(number(INT, 0, 0, o) for o in switches)
    assert update()
    after = [(i, row) for i in changed if lists[i] is not None for row in range(len(lists[i]))]
    head = text(kernel) + number(KERNEL) + text(title) + number(len(lists) + len(options), 0) + parts + number(0)
    return head + number(len(after)) + b"".join(number(i, row) + tensor(lists[i][row]) for i, row in after)


def step_cases():
    """The fused updates of SGD and Adam, which are no ops."""
    for dtype in (tg.float32, tg.float64):
        for size in (5, 40000):
            grads, *state = ([tg.linspace(a, a + k, size, dtype=dtype) for k in (1, 2)] for a in (1.0, 0.5, 0.25, 0.75))
            params = [tg.linspace(-1, k, size, dtype=dtype) for k in (1, 2)]
            for p, g in zip(params, grads):
                p.requires_grad_().grad = g
            for bufs in (None, state[0]):
                options = (0.1, 0.9 if bufs else 0.0, 0.0, 0.01, bool(bufs), False)
                yield step_case(
                    "sgd_step",
                    "sgd",
                    [params, grads, bufs],
                    (0, 2),
                    options,
                    lambda: updates.sgd_step(params, bufs, *options),
                )
            steps = [tg.tensor(3.0), tg.tensor(4.0)]
            for most in (None, state[2]):
                numbers = (0.1, 0.9, 0.999, 1e-8, 0.01)
                lists = [params, grads, state[0], state[1], most, steps]
                yield step_case(
                    "adam_step", "adam", lists, (0, 2, 3, 4, 5), (*numbers, bool(most), False),
                    lambda: updates.adam_step(params, *lists[2:], *numbers, bool(most), bool(most), False),
                )  # fmt: skip


def large_products():
    """Products larger than the samples, which are tiny: one of every way to compute them, some cut into pieces."""
    generator = tg.Generator().manual_seed(0)
    for dtype in (tg.float32, tg.float64, tg.complex64, tg.int32, tg.bfloat16):

        def make(*shape, dtype=dtype):
            return tg.randint(-9, 9, shape, generator=generator).to(dtype)

        for name, *shapes in (
            ("mm", (300, 260), (260, 200)),
            ("mm", (1, 70), (70, 80)),
            ("mv", (90, 80), (80,)),
            ("dot", (5000,), (5000,)),
            ("bmm", (5, 70, 80), (5, 80, 60)),
            ("matmul", (2, 1, 40, 30), (3, 30, 50)),
            ("matmul", (3, 40, 30), (30, 50)),
            ("linear", (40, 30), (50, 30), (50,)),
            ("addmm", (50,), (40, 30), (30, 50)),
            ("addmv", (90,), (90, 80), (80,)),
            ("baddbmm", (5, 1, 60), (5, 70, 80), (5, 80, 60)),
        ):
            yield f"aten::{name}", kernel_case(ops[f"aten::{name}"], Sample(*(make(*s) for s in shapes)))


def large_convolutions():
    """Convolutions that are cut into blocks, and their gradients."""
    generator = tg.Generator().manual_seed(0)
    for dtype in (tg.float32, tg.float64):
        for shape, kernel, stride, padding, dilation, groups in (
            ((3, 40, 20, 20), (70, 40, 3, 3), [1, 1], [1, 1], [1, 1], 1),
            ((5, 16, 33, 31), (6, 8, 3, 2), [2, 3], [2, 0], [2, 1], 2),
            ((2, 8, 300), (8, 1, 5), [2], [3], [1], 8),
        ):
            x, w = (tg.randn(s, generator=generator).to(dtype) for s in (shape, kernel))
            window = (stride, padding, dilation, groups)
            forward = f"conv{len(stride)}d"
            grad = getattr(tg, forward)(x, w, None, *window)
            for name, *args in (
                (forward, x, w, tg.randn(kernel[0], generator=generator).to(dtype), *window),
                ("_conv_input_grad", grad, w, list(shape), *window),
                ("_conv_weight_grad", grad, x, list(kernel), *window),
            ):
                yield f"aten::{name}", kernel_case(ops[f"aten::{name}"], Sample(*args))


def of_lapack():
    """Names of the kernels that need LAPACK, which a program in C does not load."""
    kernels = Path(tg.__file__).parent / "kernels"
    texts = [c.read_text() for c in kernels.glob("*.c") if c.name != "lapack.c"]
    asking = [text for text in texts if "tgx_routine_needed(" in text]
    return {name for text in asking for name in re.findall(r"^TGX_KERNEL\((\w+),", text, re.M)}


def cases():
    """(op name, case) of every op that C computes, from its record's samples."""
    without = of_lapack()
    for op in sweep.ops():
        make = {"kernel": kernel_case, "pointwise": loop_case}.get(op.kernel_kind)
        if make is None or op.record.kernel in without or op.name in COMPUTED:
            continue
        for dtype in sweep.supported(op):
            for sample in sweep.samples(op, dtype)[:FEW]:
                case = make(op, sample)
                if case is not None:
                    yield op.name, case
    yield from large_products()
    yield from large_convolutions()
    for case in step_cases():
        yield "fused update", case


def write(path):
    """Write all cases; returns the names of the ops."""
    found = list(cases())
    path.write_bytes(number(len(found)) + b"".join(case for _, case in found))
    return sorted({name for name, _ in found})


def write_with_own_products(path):
    """The same in a new process, whose products are computed without a library."""
    env = {**os.environ, "TINYGRAD_EXT_BLAS": "own", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    program = [sys.executable, "-m", __name__, path]
    return json.loads(subprocess.run(program, env=env, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    assert blas.blas_info()["library"] is None
    print(json.dumps(write(Path(sys.argv[1]))))
