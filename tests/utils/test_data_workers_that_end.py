"""Workers that end in the middle of something: the error, the next pass over a loader, and what stays behind."""

import multiprocessing
import os
import signal
import time

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.utils import data


class Deadly:
    """Ends the process that writes it down."""

    def __reduce__(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Failing:
    """Cannot be written down."""

    def __reduce__(self):
        raise TypeError("not to be written down")


ENDS = {
    "raise": lambda: {}["five"],
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(0),
    "sleep": lambda: time.sleep(60),
    "write": Deadly,
    "refuse": Failing,
}
ERRORS = {
    "raise": (KeyError, "Caught KeyError in DataLoader worker process 0"),
    "kill": (RuntimeError, "is killed by signal: SIGKILL"),
    "exit": (RuntimeError, "exited unexpectedly with exit code 0"),
    "sleep": (RuntimeError, "timed out after 0.5 seconds"),
    "write": (RuntimeError, "is killed by signal: SIGKILL"),
    "refuse": (TypeError, "Caught TypeError in DataLoader worker process 0"),
}


class EndsAtFive(data.Dataset):
    """Importable, for workers that are spawned."""

    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return tg.full((3000,), float(index)), ENDS[self.how]() if index == 4 else index


def plain(batch):
    return batch


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before = shared()
    yield
    collect()
    assert not multiprocessing.active_children()
    left, patience = shared() - before, time.monotonic() + 20  # those of tests beside this one go by themselves
    while left and time.monotonic() < patience:
        time.sleep(0.05)
        left &= shared()
    assert not left


def shared():
    names = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else ()
    return {name for name in names if "tinygrad" in name}


@pytest.mark.parametrize("how", ENDS)
def test_a_persistent_loader_tells_it_in_each_pass(how):
    error, message = ERRORS[how]
    loader = data.DataLoader(
        EndsAtFive(how), batch_size=2, num_workers=2, persistent_workers=True, collate_fn=plain,
        timeout=0.5 * (how == "sleep"),
    )  # fmt: skip
    for _ in range(2):
        came = 0
        with pytest.raises(error, match=message):
            for batch in loader:
                assert [index for _, index in batch] == [2 * came, 2 * came + 1]
                came += 1
        assert came <= 2


@pytest.mark.parametrize("how", ["exit", "write"])
def test_spawned_workers_that_end_are_told(how):
    error, message = ERRORS[how]
    with pytest.raises(error, match=message):
        for batch in data.DataLoader(
            EndsAtFive(how), batch_size=2, num_workers=1, multiprocessing_context="spawn", collate_fn=plain
        ):
            assert len(batch) == 2
