"""Rules of the matrix products, with the BLAS found here and with none. Compiled functions are reached by ctypes."""

import ctypes
import functools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from tinygrad_ext.core.loops import blas, parallel

ROW, COL, NO, TRANS, CONJ = 101, 102, 111, 112, 113
POINTER, INT, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
SCALARS = {"s": ctypes.c_float, "d": ctypes.c_double, "c": POINTER, "z": POINTER}
DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
WIDE = {"s": np.float64, "d": np.longdouble, "c": np.complex128, "z": np.clongdouble}


def compiled(module, name, restype, *argtypes):
    """The compiled function `name`; the GIL is released while it runs."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = module.__pyx_capi__[name]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(restype, *argtypes)(address)


GEMM = [*[INT] * 3, *[SIZE] * 3, None, POINTER, SIZE, POINTER, SIZE, None, POINTER, SIZE]
GEMV = [INT, INT, SIZE, SIZE, None, POINTER, SIZE, POINTER, SIZE, None, POINTER, SIZE]
DOT = [SIZE, POINTER, SIZE, POINTER, SIZE]
NAMES = ("sgemm", "dgemm", "cgemm", "zgemm", "sgemv", "dgemv", "sdot", "ddot")


@functools.cache
def product(name):
    """A function of the table that kernels get (kernels/blas.h); the library is looked for at the first."""
    table = (POINTER * len(NAMES)).from_address(compiled(blas, "find_blas", POINTER)())
    scalar = SCALARS[name[0]]
    arguments = {"gemm": GEMM, "gemv": GEMV, "dot": DOT}[name[1:]]
    result = scalar if name.endswith("dot") else None
    return ctypes.CFUNCTYPE(result, *[a or scalar for a in arguments])(table[NAMES.index(name)])


def draw(rng, kind, *shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if kind in "cz" else x).astype(DTYPES[kind])


def scalar(kind, value):
    """A number as the product wants it, and what keeps its memory alive."""
    held = np.array(value, DTYPES[kind])
    return (held.ctypes.data if kind in "cz" else value), held


def stored(x, order, trans):
    """Memory whose op() is x in the given order, in rows one longer than needed; and its leading dimension."""
    x = {NO: x, TRANS: x.T, CONJ: x.conj().T}[trans]
    x = x if order == ROW else x.T
    memory = np.full((x.shape[0], x.shape[1] + 1), np.nan, x.dtype)
    memory[:, :-1] = x
    return memory, memory.shape[1]


def exactly(kind, a, b, c, alpha, beta):
    """alpha a b + beta c, and how far a library may be from it, element by element, in whatever order it adds."""
    x, y = a.astype(WIDE[kind]), b.astype(WIDE[kind])
    z = beta * c.astype(WIDE[kind]) if beta else np.zeros(c.shape, WIDE[kind])
    size = abs(alpha) * (abs(a) @ abs(b)) + abs(z)
    return alpha * (x @ y) + z, (a.shape[1] + 4) * np.finfo(DTYPES[kind]).eps * size


def check_gemm(kind, order, trans_a, trans_b, m, n, k, alpha, beta):
    rng = np.random.default_rng(m * n + k)
    a, b, c = draw(rng, kind, m, k), draw(rng, kind, k, n), draw(rng, kind, m, n)
    if beta == 0:
        c[...] = np.nan  # must not be read
    expected, bound = exactly(kind, a, b, c, alpha, beta)
    (a, lda), (b, ldb), (c, ldc) = stored(a, order, trans_a), stored(b, order, trans_b), stored(c, order, NO)
    (alpha, keep_alpha), (beta, keep_beta) = scalar(kind, alpha), scalar(kind, beta)
    product(f"{kind}gemm")(
        order, trans_a, trans_b, m, n, k, alpha, a.ctypes.data, lda, b.ctypes.data, ldb, beta, c.ctypes.data, ldc
    )
    result = c[:, :-1] if order == ROW else c[:, :-1].T
    assert (abs(result - expected) <= bound).all()
    assert np.isnan(c[:, -1]).all(), "wrote beyond a row"


def check_every_gemm():
    for kind in "sdcz":
        factors = [(1, 0), (2, 1), (-0.5, 3)] + ([(1 + 2j, 0.5 - 1j)] if kind in "cz" else [])
        trans = (NO, TRANS, CONJ) if kind in "cz" else (NO, TRANS)
        for m, n, k in [(1, 1, 1), (3, 5, 7), (4, 8, 0), (70, 9, 130), (65, 33, 260)]:
            for order in (ROW, COL):
                for trans_a in trans:
                    for trans_b in trans:
                        check_gemm(kind, order, trans_a, trans_b, m, n, k, *factors[(m + trans_a) % len(factors)])


def check_every_vector_product():
    rng = np.random.default_rng(0)
    for kind in "sd":
        a, x, y = draw(rng, kind, 6, 4), draw(rng, kind, 8), draw(rng, kind, 12)
        out = y.copy()
        product(f"{kind}gemv")(ROW, NO, 6, 4, 2, a.ctypes.data, 4, x.ctypes.data, 2, 3, out.ctypes.data, 2)
        np.testing.assert_allclose(out[::2], 2 * a @ x[::2] + 3 * y[::2], rtol=1e-4)
        out = np.full(4, np.nan, a.dtype)
        product(f"{kind}gemv")(ROW, TRANS, 6, 4, 1, a.ctypes.data, 4, y.ctypes.data, -2, 0, out.ctypes.data, -1)
        np.testing.assert_allclose(out[::-1], a.T @ y[::2][::-1], rtol=1e-4)
        np.testing.assert_allclose(
            product(f"{kind}dot")(8, x.ctypes.data, 1, y.ctypes.data, -1), x @ y[:8][::-1], rtol=1e-4
        )


def in_new_process(code):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_products_are_right_with_the_library_found():
    blas.blas_info()
    check_every_gemm()
    check_every_vector_product()


def test_products_are_right_without_a_library():
    assert (
        in_new_process("""
import test_blas as t
t.blas._candidates = lambda: []
assert t.blas.blas_info()["library"] is None and t.blas.blas_info()["threads"] == 1
t.check_every_gemm(); t.check_every_vector_product(); print("right")
""")
        == "right"
    )


def test_the_own_products_can_be_asked_for():
    assert (
        in_new_process("""
import os
os.environ["TINYGRAD_EXT_BLAS"] = "own"
import test_blas as t
import tinygrad_ext as tg
assert t.blas.blas_info()["library"] is None
a = tg.arange(4096.0).reshape(64, 64)
assert (a @ tg.eye(64)).tolist() == a.tolist()
print("own")
""")
        == "own"
    )


def test_what_goes_wrong_while_the_library_is_looked_for_reaches_the_caller():
    assert (
        in_new_process("""
import test_blas as t
import tinygrad_ext as tg
real = t.blas._candidates
def failing():
    raise KeyboardInterrupt("in the middle")
t.blas._candidates = failing
for size in (30, 64):  # with the interpreter's lock, and without
    a = tg.eye(size)
    try:
        a @ a
    except KeyboardInterrupt as error:
        print(error, end=" ")
t.blas._candidates = real
assert (a @ a).tolist() == a.tolist()
""")
        == "in the middle in the middle"
    )


def test_an_operand_that_changes_while_the_library_is_looked_for_is_read_as_it_is_then():
    assert (
        in_new_process("""
import test_blas as t
import tinygrad_ext as tg
real = t.blas._candidates
a, b = tg.ones(30, 30), tg.ones(30, 30)
def changing():
    a.resize_(2, 30)
    return real()
t.blas._candidates = changing
print((a @ b).shape)
""")
        == "torch.Size([2, 30])"
    )


def test_a_32_bit_library_is_used_with_its_own_integers():
    """SciPy's wheel carries an OpenBLAS with 32-bit integers."""
    scipy = pytest.importorskip("scipy")
    folder = os.path.join(os.path.dirname(os.path.dirname(scipy.__file__)), "scipy.libs")
    names = [name for name in os.listdir(folder) if "openblas" in name] if os.path.isdir(folder) else []
    if not names:
        pytest.skip("this SciPy brings no OpenBLAS")
    assert (
        in_new_process(f"""
import test_blas as t
t.blas._candidates = lambda: ["/no/such/library", {os.path.join(folder, names[0])!r}]
assert t.blas.blas_info()["int_width"] == 32
t.check_every_gemm(); t.check_every_vector_product(); print("right")
""")
        == "right"
    )


def test_a_file_that_is_no_library_is_passed_over(tmp_path):
    fake = tmp_path / "libopenblas.so"
    fake.write_text("no library")
    assert (
        in_new_process(f"""
import test_blas as t
t.blas._candidates = lambda: [{str(fake)!r}]
print(t.blas.blas_info()["library"])
""")
        == "None"
    )


def test_numpys_own_library_comes_first():
    folder = os.path.join(os.path.dirname(os.path.dirname(np.__file__)), "numpy.libs")
    if not os.path.isdir(folder) or not any("openblas" in name for name in os.listdir(folder)):
        pytest.skip("this NumPy brings no OpenBLAS")
    info = blas.blas_info()
    assert os.path.dirname(os.path.realpath(info["library"])) == os.path.realpath(folder)
    assert info["config"].startswith("OpenBLAS") and info["core"]


def test_blas_info_reports_a_preset_processor(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert blas.blas_info()["coretype"] == "Haswell"


def test_the_library_is_looked_up_once_by_many_threads():
    assert (
        in_new_process("""
import threading
import test_blas as t
calls, real = [], t.blas._candidates
t.blas._candidates = lambda: calls.append(1) or real()
threads = [threading.Thread(target=t.blas.blas_info) for _ in range(8)]
[x.start() for x in threads]; [x.join() for x in threads]
print(len(calls))
""")
        == "1"
    )


@pytest.fixture
def openblas():
    """What was found; not looked up at import, because processes started here import this file first."""
    info = blas.blas_info()
    if info["config"] is None:
        pytest.skip("no OpenBLAS here")
    return info


@pytest.fixture
def keep_num_threads():
    before = parallel.get_num_threads()
    yield
    parallel.set_num_threads(before)


@pytest.mark.usefixtures("openblas", "keep_num_threads")
def test_blas_threads_follow_set_num_threads():
    for n in (1, 2):
        parallel.set_num_threads(n)
        assert blas.blas_info()["threads"] == n


@pytest.mark.usefixtures("openblas")
def test_threads_set_before_the_lookup_count():
    assert (
        in_new_process("""
from tinygrad_ext.core.loops import blas
from tinygrad_ext.core.loops import parallel
parallel.set_num_threads(1); print(blas.blas_info()["threads"])
""")
        == "1"
    )


@pytest.mark.usefixtures("openblas")
def test_a_limit_set_for_the_library_alone_stays():
    assert (
        in_new_process("""
import os; os.environ["OPENBLAS_NUM_THREADS"] = "1"; os.environ["TINYGRAD_EXT_NUM_THREADS"] = "2"
from tinygrad_ext.core.loops import blas
from tinygrad_ext.core.loops import parallel
print(parallel.get_num_threads(), blas.blas_info()["threads"])
""")
        == "2 1"
    )


@pytest.mark.usefixtures("keep_num_threads")
def test_the_library_has_one_thread_inside_a_region_and_its_own_again_after(openblas):
    range_fn = ctypes.CFUNCTYPE(INT, POINTER, ctypes.c_ssize_t, ctypes.c_ssize_t)
    parallel_for = compiled(parallel, "parallel_for", INT, range_fn, POINTER, ctypes.c_ssize_t, ctypes.c_ssize_t)
    enter = compiled(parallel, "enter_blas", INT)
    leave = compiled(parallel, "leave_blas", None, INT)
    library = ctypes.CDLL(openblas["library"])
    names = [f"{p}openblas_get_num_threads{s}" for p in ("scipy_", "") for s in ("64_", "")]
    threads = next(getattr(library, name) for name in names if hasattr(library, name))
    parallel.set_num_threads(2)
    inside = []

    def chunk(_, lo, hi):
        entered = enter()
        inside.append(threads())
        leave(entered)
        return 0

    for _ in range(100):
        parallel.set_num_threads(2)  # and splits, however busy this machine is
        parallel_for(range_fn(chunk), None, 2, 1)
    assert set(inside) == {1} and len(inside) == 200
    assert threads() == 2
    assert enter() == 0  # outside a region nothing changes


def test_products_in_several_python_threads_at_once():
    errors = []

    def work():
        try:
            for _ in range(20):
                check_gemm("s", ROW, NO, TRANS, 120, 130, 140, 1, 0)
        except AssertionError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # says that threads run: they do
def test_a_forked_child_computes_products():
    check_gemm("s", ROW, NO, NO, 300, 300, 300, 1, 0)
    child = os.fork()
    if not child:
        code = 1
        try:
            check_gemm("s", ROW, NO, NO, 300, 300, 300, 1, 0)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
