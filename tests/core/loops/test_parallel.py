"""Rules of the thread pool. Compiled functions are reached by ctypes, through the capsules made for cimport."""

import ctypes
import os
import signal
import subprocess
import sys
import threading

import pytest

from tinygrad_ext.core.loops import parallel

RANGE_FN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t)


def compiled(module, name, restype, *argtypes):
    """The compiled function `name`; the GIL is released while it runs."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = module.__pyx_capi__[name]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(restype, *argtypes)(address)


in_parallel = compiled(parallel, "in_parallel", ctypes.c_int)
_parallel_for = compiled(
    parallel, "parallel_for", ctypes.c_int, RANGE_FN, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t
)


def parallel_for(function, n, grain=1):
    return _parallel_for(RANGE_FN(lambda _, lo, hi: function(lo, hi) or 0), None, n, grain)


def chunks(n, grain=1):
    seen = []
    assert parallel_for(lambda lo, hi: seen.append((lo, hi)), n, grain) == 0
    return sorted(seen)


@pytest.fixture(autouse=True)
def keep_num_threads():
    before = parallel.get_num_threads()
    yield
    parallel.set_num_threads(before)


def run_python(code, **env):
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def run_in_fork(function):
    """Exit code of a forked child that runs `function`; a hang ends by alarm."""
    child = os.fork()
    if not child:
        signal.alarm(600)
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def expected_chunks(n, grain, threads):
    """As many as there are threads, or up to four times as many, of `grain` at least."""
    fit = n // max(grain, 1)
    if threads == 1 or fit < 2:
        return min(n, 1)
    return fit if fit <= threads else min(fit // threads, 4) * threads


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize(("n", "grain"), [(0, 1), (1, 1), (7, 3), (100, 0), (100, 30), (100, 9), (1000, 1)])
def test_chunks_cover_the_range_once_and_keep_to_grain(threads, n, grain):
    parallel.set_num_threads(threads)
    seen = chunks(n, grain)
    assert [i for lo, hi in seen for i in range(lo, hi)] == list(range(n))
    assert len(seen) == expected_chunks(n, grain, threads)
    assert len(seen) < 2 or all(hi - lo >= grain for lo, hi in seen)


def test_large_chunks_begin_at_multiples():
    parallel.set_num_threads(2)
    assert all(lo % 16 == 0 for lo, _ in chunks(1003))


def test_a_negative_range_is_empty():
    assert chunks(-5) == []


def test_one_chunk_runs_in_the_caller_and_is_no_region():
    seen = []
    parallel_for(lambda lo, hi: seen.append((threading.get_ident(), in_parallel())), 10, 10)
    assert seen == [(threading.get_ident(), 0)]


def test_a_nested_call_runs_inline():
    parallel.set_num_threads(4)
    inner = []

    def outer(lo, hi):
        assert in_parallel()
        return parallel_for(lambda a, b: inner.append((lo, a, b)), 100)

    assert parallel_for(outer, 4) == 0
    assert sorted(inner) == [(lo, 0, 100) for lo in range(4)]
    assert not in_parallel()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_lowest_failing_chunk_gives_the_code(threads):
    parallel.set_num_threads(threads)
    for first in (1, 3, 50, 99):
        assert parallel_for(lambda lo, hi, first=first: next((i for i in range(lo, hi) if i >= first), 0), 100) == first
    assert parallel_for(lambda lo, hi: -7, 100) == -7
    assert parallel_for(lambda lo, hi: 0, 100) == 0


def test_many_small_regions():
    parallel.set_num_threads(3)
    total = 0

    def count(lo, hi):
        nonlocal total
        total += hi - lo

    for _ in range(3000):
        parallel_for(count, 3)
    assert total == 9000


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_a_second_thread_on_the_only_core_is_given_up():
    code = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import test_parallel as t
t.parallel.set_num_threads(2)
assert len(t.chunks(8)) == 8
assert any(len(t.chunks(8)) == 1 for _ in range(2000))
t.parallel.set_num_threads(2)
print(len(t.chunks(8)))
"""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    assert run_python(code, PYTHONPATH=path)[0] == "8"


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads the masks of all threads")
def test_workers_that_are_moved_among_busy_cores_keep_to_those_allowed():
    code = """
import os, subprocess, sys
import test_parallel as t
allowed = os.sched_getaffinity(0)
busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * len(allowed))]
try:
    t.parallel.set_num_threads(3)
    for grain in [1] * 200 + [40] * 400:
        seen = []
        work = lambda lo, hi: [seen.append((lo, hi)), sum(range(250 * (hi - lo)))] and 0
        assert t.parallel_for(work, 240, grain) == 0
        seen.sort()
        assert [seen[0][0], seen[-1][1]] == [0, 240] and all(a[1] == b[0] for a, b in zip(seen, seen[1:]))
    masks = [os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")]
finally:
    for process in busy:
        process.kill()
print(all(mask and mask <= allowed for mask in masks), len(masks) >= 3)
"""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    assert run_python(code, PYTHONPATH=path)[0] == "True True"


TWO_CORES = """
import os, threading, time
import test_parallel as t
mine, other = sorted(os.sched_getaffinity(0))[:2]
main = threading.get_native_id()
t.parallel.set_num_threads(2)

def meet(task=lambda: None):
    # regions until a worker runs a chunk, and with it the task; one that wakes on the caller's core runs none
    ids, end = set(), time.monotonic() + 60
    def work(lo, hi):
        if threading.get_native_id() == main:
            begun.wait(0.1)
        else:
            begun.set()
            ids.add(threading.get_native_id())
            task()
    while not ids and time.monotonic() < end:
        begun = threading.Event()
        assert t.parallel_for(work, 2) == 0
    return ids.pop()
"""
needs_two_cores = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores and their masks"
)


@needs_two_cores
def test_a_worker_that_does_not_run_gets_the_core_of_the_caller_who_waits():
    code = """
masks = []
def wait():
    end = time.monotonic() + 60
    while len(os.sched_getaffinity(0)) > 1 and time.monotonic() < end:
        time.sleep(0.01)  # as if it had lost its core
    masks.append(os.sched_getaffinity(0))

thread = meet()
os.sched_setaffinity(thread, {mine, other})
os.sched_setaffinity(main, {mine, other})
meet(wait)
print(len(masks[0]), masks[0] <= {mine, other})
"""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    assert run_python(TWO_CORES + code, PYTHONPATH=path)[0] == "1 True"


@needs_two_cores
def test_a_worker_on_the_callers_core_is_bound_to_another():
    code = """
thread = meet()
os.sched_setaffinity(thread, {mine})
end = time.monotonic() + 60
while os.sched_getaffinity(thread) == {mine} and time.monotonic() < end:
    os.sched_setaffinity(main, {mine})  # onto the worker's core, and then free to go where it likes
    os.sched_setaffinity(main, {mine, other})
    t.parallel_for(lambda lo, hi: None, 2)
    time.sleep(0.001)  # the worker wakes up here
print(os.sched_getaffinity(thread) == {other})
"""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    assert run_python(TWO_CORES + code, PYTHONPATH=path)[0] == "True"


def test_several_python_threads_may_call_at_once():
    parallel.set_num_threads(3)
    wrong = []

    def work():
        for n in range(1, 300):
            if sum(hi - lo for lo, hi in chunks(n)) != n:
                wrong.append(n)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # says that threads run: they do
def test_a_forked_child_gets_workers_of_its_own():
    def split(threads):
        parallel.set_num_threads(threads)  # and forgets that this machine may be busy
        return len(chunks(100)) == 4 * threads

    def in_child():
        assert all(split(3) for _ in range(50))
        assert split(2)
        assert run_in_fork(lambda: chunks(100)) == 0

    assert split(3)
    assert run_in_fork(in_child) == 0
    assert split(3)


def test_a_process_ends_while_a_region_runs():
    code = """
import threading
import test_parallel as t
t.parallel.set_num_threads(4)
nothing = t.RANGE_FN(lambda *_: 0)

def work():
    while True:
        t._parallel_for(nothing, None, 4, 1)

threading.Thread(target=work, daemon=True).start()
assert len(t.chunks(100)) in (1, 16)
print("end")
"""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    assert run_python(code, PYTHONPATH=path)[0] == "end"


def test_set_num_threads_is_read_back():
    parallel.set_num_threads(5)
    assert parallel.get_num_threads() == 5


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0, RuntimeError, "set_num_threads expects a positive integer, but got 0"),
        (-2, RuntimeError, "set_num_threads expects a positive integer, but got -2"),
        (1.5, TypeError, "set_num_threads expects an int, but got float"),
        (True, TypeError, "set_num_threads expects an int, but got bool"),
        (None, TypeError, "set_num_threads expects an int, but got NoneType"),
        (2**40, ValueError, "set_num_threads expects an integer up to"),
    ],
)
def test_set_num_threads_refuses(value, error, message):
    before = parallel.get_num_threads()
    with pytest.raises(error, match=message):
        parallel.set_num_threads(value)
    assert parallel.get_num_threads() == before


SHOW = "from tinygrad_ext.core.loops import parallel; print(parallel.get_num_threads())"


@pytest.mark.parametrize(
    ("env", "threads"),
    [
        ({"TINYGRAD_EXT_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"TINYGRAD_EXT_NUM_THREADS": "", "OMP_NUM_THREADS": "5,2"}, 5),
    ],
)
def test_the_environment_sets_the_default(env, threads):
    assert run_python(SHOW, **env)[0] == str(threads)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_the_default_is_the_number_of_cores_allowed():
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); " + SHOW
    assert run_python(code, TINYGRAD_EXT_NUM_THREADS="", OMP_NUM_THREADS="")[0] == "1"


def test_a_malformed_variable_is_ignored_with_a_warning():
    out, err = run_python(SHOW, TINYGRAD_EXT_NUM_THREADS="two", OMP_NUM_THREADS="4")
    assert out == "4"
    assert "TINYGRAD_EXT_NUM_THREADS expects a positive integer, but is 'two'" in err
