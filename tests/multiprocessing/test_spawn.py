"""spawn and start_processes: what becomes of the processes."""

import os
import pickle
import signal
import time

import pytest

import tinygrad_ext as tg
import tinygrad_ext.multiprocessing as mp


def add(index, shared):
    shared[index] = index + 1


def fail(index, text):
    if index == 1:
        raise ValueError(text)
    time.sleep(60)


def leave(index, how):
    if index == 0:
        time.sleep(3600)
    if how < 0:
        os.kill(os.getpid(), -how)
    os._exit(how)


def test_spawn_runs_the_function_with_each_index():
    shared = tg.zeros(2).share_memory_()
    assert mp.spawn(add, (shared,), nprocs=2) is None
    assert shared.tolist() == [1, 2]


def test_what_a_process_raises_is_told_with_its_traceback():
    with pytest.raises(mp.ProcessRaisedException) as error:
        mp.start_processes(fail, ("no such row",), nprocs=2, start_method="fork")
    assert mp.active_children() == []
    text = str(error.value)
    assert text.startswith("\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):")
    assert "in fail" in text and text.endswith("ValueError: no such row\n")
    assert error.value.error_index == 1 and error.value.error_pid > 0
    assert str(pickle.loads(pickle.dumps(error.value))) == text


def test_a_long_text_does_not_hold_a_process_up():
    with pytest.raises(mp.ProcessRaisedException, match="x" * 1000):
        mp.start_processes(fail, ("x" * 1_000_000,), nprocs=2, start_method="fork")


@pytest.mark.parametrize(
    "how, message, name",
    [(3, "1 terminated with exit code 3", None), (-signal.SIGKILL, "terminated with signal SIGKILL", "SIGKILL")],
)
def test_a_process_that_ends_otherwise_is_told_by_its_code(how, message, name):
    with pytest.raises(mp.ProcessExitedException, match=message) as error:
        mp.start_processes(leave, (how,), nprocs=2, start_method="fork")
    assert (error.value.exit_code, error.value.signal_name, error.value.error_index) == (how, name, 1)
    assert pickle.loads(pickle.dumps(error.value)).exit_code == how


def test_without_join_a_context_is_returned():
    shared = tg.zeros(2).share_memory_()
    context = mp.start_processes(add, (shared,), nprocs=2, join=False, start_method="fork")
    assert type(context) is mp.ProcessContext and len(context.pids()) == 2
    while not context.join(timeout=5):
        pass
    assert context.join() and shared.tolist() == [1, 2]


def test_a_start_method_given_to_spawn_is_warned_of():
    shared = tg.zeros(1).share_memory_()
    with pytest.warns(FutureWarning, match="start_processes"):
        mp.spawn(add, (shared,), start_method="fork")
    with pytest.warns(UserWarning, match="ProcessContext"):
        mp.SpawnContext([], [])
