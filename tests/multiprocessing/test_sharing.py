"""Tensors that several processes share."""

import os
import signal
import subprocess
import sys
import threading
from multiprocessing.reduction import ForkingPickler

import pytest

import tinygrad_ext as tg
import tinygrad_ext.multiprocessing as mp
from tinygrad_ext import nn

# ---- one process ---------------------------------------------------------------------------------------------------


def test_a_shared_tensor_keeps_its_views_values_and_identity():
    t = tg.arange(6.0)
    view, parts = t[2:], [t[:1]]
    assert not t.is_shared()
    assert t.share_memory_() is t
    assert t.is_shared() and view.is_shared() and parts[0].is_shared() and t.untyped_storage().is_shared()
    view.zero_()
    assert t.tolist() == [0, 1, 0, 0, 0, 0] and view.data_ptr() == t.data_ptr() + 8
    assert not t.clone().is_shared()


def test_a_storage_shares_the_tensors_over_it():
    t = tg.ones(2, 3)
    assert t.T.untyped_storage().share_memory_().nbytes() == 24
    assert t.is_shared() and t.sum() == 6


def test_an_array_that_was_lent_before_stays_readable():
    t = tg.arange(1000.0)
    array = t.numpy()
    t.share_memory_()
    t.zero_()
    tg.empty_cache()
    assert array[999] == 999


def test_a_tensor_with_attributes_and_history_is_found_and_moved():
    leaf = tg.ones(3, requires_grad=True)
    leaf.note = "the collector knows it"
    with tg.no_grad():
        view = leaf[1:]
    out = (leaf * 2).sum()
    view.share_memory_()
    assert leaf.is_shared() and leaf.data_ptr() + 4 == view.data_ptr()
    out.backward()
    assert leaf.grad.tolist() == [2, 2, 2]


def test_a_traced_function_goes_on_with_moved_memory():
    weight = tg.ones(4)
    traced = tg.jit.trace(lambda x: x * weight, (tg.ones(4),))
    weight.share_memory_()
    weight.fill_(3)
    assert traced(tg.ones(4)).tolist() == (tg.ones(4) * weight).tolist()


def test_objects_that_claim_another_class_are_not_asked():
    class Lazy:
        @property
        def __class__(self):
            raise AssertionError("asked")

    lazy = Lazy()
    t = tg.ones(2)
    view = t[1:]
    assert t.share_memory_().is_shared() and view.is_shared() and type(lazy) is Lazy


def test_empty_tensors_are_shared_too():
    assert tg.empty(0).share_memory_().is_shared()


def test_meta_tensors_are_not():
    assert not tg.empty(2, device="meta").is_shared()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        tg.empty(2, device="meta").share_memory_()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        tg.empty(2, device="meta").untyped_storage().share_memory_()


def test_more_than_there_is_is_refused():
    from tinygrad_ext.tensor.sharing import new_block

    for nbytes in (1 << 50, (1 << 63) - 1):
        with pytest.raises(RuntimeError, match="unable to (mmap|allocate) .* bytes of shared memory"):
            new_block(nbytes)


def test_a_module_is_shared_whole():
    layer = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    assert layer.share_memory() is layer
    assert all(t.is_shared() for t in layer.state_dict().values())
    assert layer[0].weight.requires_grad


def test_memory_goes_with_its_last_tensor():
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    t = [tg.ones(10).share_memory_() for _ in range(50)]
    del t
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == before


def test_strategies_have_pytorchs_names():
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    assert mp.get_sharing_strategy() == "file_descriptor"
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy 'paper'"):
        mp.set_sharing_strategy("paper")


def test_a_tensor_with_a_graph_is_refused():
    with pytest.raises(RuntimeError, match=r"send tensor.detach\(\)"):
        ForkingPickler.dumps(tg.ones(2, requires_grad=True) * 2)


def test_the_package_is_imported_without_multiprocessing():
    code = "import sys, tinygrad_ext as tg; tg.ones(2).share_memory_(); import tinygrad_ext.utils.data as d; "
    code += "list(d.DataLoader(d.TensorDataset(tg.ones(2)))); sys.exit('multiprocessing' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- several processes ---------------------------------------------------------------------------------------------


def change(inbox, outbox, given, done):
    came = inbox.get(timeout=20)
    came["row"] += 1
    given += 1
    a = tg.ones(300, 300)
    product = (a @ a + a).sum()  # with threads of its own
    outbox.send([came, came["row"].untyped_storage() == came["view"].untyped_storage(), product])
    done.wait(20)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_both_sides_see_what_either_writes(method):
    a = tg.ones(300, 300)
    expected = (a @ a + a).sum()  # the parent's threads exist before the child does
    context = mp.get_context(method)
    done, queue, (here, there) = context.Event(), context.Queue(), context.Pipe()
    given = tg.zeros(3).share_memory_()
    child = context.Process(target=change, args=(queue, there, given, done))
    child.start()
    sent = tg.zeros(2, 4)
    queue.put(
        {
            "row": sent[0],
            "view": sent[0, 2:],
            "all": nn.Parameter(sent),
            "empty": tg.empty(0, 2),
            "half": tg.ones(1).half(),
        }
    )
    assert here.poll(30), "the child computes nothing"
    back, one_storage, product = here.recv()
    assert sent[0].tolist() == [1, 1, 1, 1] and given.tolist() == [1, 1, 1]
    assert one_storage and back["row"].untyped_storage() == sent.untyped_storage()
    assert type(back["all"]) is nn.Parameter and back["all"].requires_grad and back["empty"].shape == (0, 2)
    assert back["half"].dtype == tg.float16
    assert product == expected
    done.set()
    child.join(20)
    assert child.exitcode == 0


def test_a_forked_child_computes_while_the_parents_threads_do():
    stop = threading.Event()

    def work():
        x = tg.ones(400, 400)
        while not stop.is_set():
            (x @ x + x).sum()

    busy = threading.Thread(target=work)
    busy.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(10)
                x = tg.ones(400, 400)
                os._exit(0 if (x @ x + x).sum().item() == 400 * 400 * 401 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        busy.join()


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs /dev/shm")
def test_nothing_stays_behind_when_both_sides_are_killed():
    code = """
import os, signal, tinygrad_ext as tg, tinygrad_ext.multiprocessing as mp
def child(pipe):
    x = pipe.recv()
    x.share_memory_()
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
context = mp.get_context("fork")
here, there = context.Pipe()
context.Process(target=child, args=(there,)).start()
here.send(tg.ones(1000))
signal.pause()
"""
    before = set(os.listdir("/dev/shm"))
    assert subprocess.run([sys.executable, "-c", code], timeout=30).returncode == -signal.SIGKILL
    assert not [name for name in set(os.listdir("/dev/shm")) - before if "tinygrad" in name or "torch" in name]
