"""Computes products with 1 to 4 threads, as `python product_bits.py`; prints as JSON which of them differ in bits.

A program of its own because OpenBLAS chooses its kernels when it is loaded (OPENBLAS_CORETYPE).
"""

import ctypes
import json
import threading

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.core.loops import blas, parallel

# rows, depth and columns: about every bound in kernels/product.c, odd sizes, long ones, vectors
SHAPES = [
    (64, 256, 512),
    (512, 256, 64),
    (64, 512, 256),
    (300, 300, 300),
    (257, 255, 253),
    (129, 700, 31),
    (31, 700, 129),
    (1000, 77, 200),
    (40, 5000, 40),
    (1100, 2, 1000),
    (52, 51, 53),
    (1, 1500, 1600),
    (1600, 1500, 1),
    (1, 30000, 1),
    (300, 1, 8000),
    (90, 90, 1),
    (1, 70, 70),
    (50, 50, 52),
    (31, 32, 33),
    (42, 42, 42),
]
DTYPES = [tg.float32, tg.float64, tg.complex64, tg.complex128, tg.bfloat16, tg.int32]


def draw(*shape, dtype=tg.float32):
    return tg.randint(-9, 9, shape, dtype=dtype) if dtype == tg.int32 else tg.randn(*shape).to(dtype)


def gradients(function, *inputs):
    """What it returns, and the gradients of all inputs."""
    inputs = [t.detach().requires_grad_() for t in inputs]
    result = function(*inputs)
    return [result, *tg.autograd.grad(result, inputs, tg.ones_like(result))]


def plain_products(dtype):
    for m, k, n in SHAPES if dtype == tg.float32 else SHAPES[::3] + SHAPES[-5:]:
        a, b = draw(m, k, dtype=dtype), draw(k, n, dtype=dtype)
        yield f"mm {m} {k} {n}", lambda a=a, b=b: [a @ b]
        at, bt = a.t().contiguous().t(), b.t().contiguous().t()
        yield f"mm transposed {m} {k} {n}", lambda a=at, b=bt: [a @ b]


def batches(dtype):
    for count, m, k, n in [(3, 130, 140, 150), (5, 64, 256, 512), (9, 64, 80, 128), (40, 40, 50, 60)]:
        a, b = draw(count, m, k, dtype=dtype), draw(count, k, n, dtype=dtype)
        yield f"bmm {count} {m} {k} {n}", lambda a=a, b=b: [tg.bmm(a, b)]
        yield f"matmul {count} {m} {k} {n}", lambda a=a, b=b: [tg.matmul(a, b[0])]
        yield f"matvec {count} {m} {k}", lambda a=a, b=b: [tg.matmul(a, b[0, :, 0])]


def with_gradients(dtype):
    a, b, c = draw(300, 260, dtype=dtype), draw(260, 200, dtype=dtype), draw(300, 200, dtype=dtype)
    yield "addmm", lambda: gradients(lambda a, b, c: tg.addmm(c, a, b, beta=0.5, alpha=2), a, b, c)
    yield "addmv", lambda: gradients(lambda a, b, c: tg.addmv(c[:, 0], a, b[:, 0]), a, b, c)
    x, w, bias = draw(4, 150, 260, dtype=dtype), draw(200, 260, dtype=dtype), draw(200, dtype=dtype)
    yield "linear", lambda: gradients(nn.functional.linear, x, w, bias)
    y, z = draw(4, 260, 150, dtype=dtype), draw(4, 150, 150, dtype=dtype)
    yield "baddbmm", lambda: gradients(tg.baddbmm, z, x, y)
    yield "einsum", lambda: gradients(lambda x, y: tg.einsum("bij,bjk->ik", x, y), x, y)


def convolutions(dtype):
    for batch, channels, outputs, size in [(1, 3, 70, 30), (7, 40, 40, 9), (5, 16, 2, 33)]:
        x, bias = draw(batch, channels, size, size, dtype=dtype), draw(outputs, dtype=dtype)
        w = draw(outputs, channels, 3, 3, dtype=dtype)
        f = nn.functional
        yield f"conv2d {batch}", lambda x=x, w=w, b=bias: gradients(lambda *a: f.conv2d(*a, stride=2), x, w, b)
        yield f"conv1d {batch}", lambda x=x, w=w, b=bias: gradients(f.conv1d, x[..., 0], w[..., 0], b)


def cases():
    tg.manual_seed(0)
    for dtype in DTYPES:
        families = [plain_products, batches]
        families += [with_gradients] if dtype != tg.int32 else []
        families += [convolutions] if dtype in (tg.float32, tg.float64) else []
        for family in families:
            for name, function in family(dtype):
                yield f"{dtype} {name}", function


def pretend_processors(count):
    """Products are cut for the processors of the machine; a test wants the cuts of a larger one, too."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = parallel.__pyx_capi__["processors"]
    ctypes.c_int.from_address(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))).value = count


def bits(tensors):
    return [t.detach().contiguous().view(tg.uint8).numpy().tobytes() for t in tensors]


def beside_another(function):
    """With the thread pool taken away again and again by a second thread."""
    done, a = threading.Event(), tg.ones(300, 300)

    def disturb():
        while not done.is_set():
            a.mm(a)

    other = threading.Thread(target=disturb)
    other.start()
    try:
        return bits(function())
    finally:
        done.set()
        other.join()


def differing():
    """How many were compared, and which differ. With one thread the cuts for five processors are made as well."""
    count, found = 0, []
    pretend_processors(5)
    for name, function in cases():
        tg.set_num_threads(1)
        want = bits(function())
        for threads in (2, 3, 4):
            tg.set_num_threads(threads)
            count += 1
            if bits(function()) != want:
                found.append(f"{name}, {threads} threads")
        if name == "torch.float32 mm 300 300 300" and beside_another(function) != want:
            found.append(f"{name}, beside another thread")
    return count, found


if __name__ == "__main__":
    count, found = differing()
    print(json.dumps({"core": blas.blas_info()["core"], "compared": count, "differing": found}))
