"""Futures, and jit.fork."""

import pickle
import threading
import typing

import pytest

import tinygrad_ext as tg
from tinygrad_ext.futures import Future, collect_all, wait_all


def failed(error):
    future = Future()
    future.set_exception(error)
    return future


def test_a_value_is_there_once_it_is_set():
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="not done yet"):
        future.value()
    future.set_result(3)
    assert future.done() and future.wait() == future.value() == 3
    for again in (lambda: future.set_result(4), lambda: future.set_exception(ValueError())):
        with pytest.raises(RuntimeError, match="mark a completed Future as complete again"):
            again()


def test_an_exception_is_raised_where_it_is_asked_for():
    future = failed(ValueError("none"))
    for ask in (future.wait, future.value):
        with pytest.raises(ValueError, match="none"):
            ask()
    with pytest.raises(AssertionError, match="not an Exception"):
        Future().set_exception(3)


def test_another_thread_may_set_it():
    future = Future()
    thread = threading.Timer(0.02, future.set_result, [tg.ones(2)])
    thread.start()
    assert future.wait().sum() == 2
    thread.join()


def test_then_chains_and_carries_errors():
    future, seen = Future(), []
    chained = future.then(lambda f: f.value() + 1).then(lambda f: f.value() * 10)
    future.add_done_callback(lambda f: seen.append(f.value()))
    future.set_result(1)
    assert chained.wait() == 20 and seen == [1]
    assert future.then(lambda f: f.value()).wait() == 1
    with pytest.raises(RuntimeError, match="error when running the callback: ZeroDivisionError: division by zero"):
        future.then(lambda f: 1 / 0).wait()
    with pytest.raises(RuntimeError, match="error when running the callback: ValueError: none"):
        failed(ValueError("none")).then(lambda f: f.wait()).wait()


def test_an_error_of_a_callback_stays_there(caplog):
    future = Future()
    future.add_done_callback(lambda f: 1 / 0)
    future.set_result(1)
    assert future.wait() == 1 and "ZeroDivisionError" in caplog.text


def test_several_are_waited_for():
    futures = [Future() for _ in range(3)]
    every = collect_all(futures)
    for number, future in enumerate(futures):
        assert not every.done()
        future.set_result(number)
    assert every.wait() == futures and wait_all(futures) == [0, 1, 2]
    assert wait_all([futures[0], futures[0]]) == [0, 0]
    assert collect_all([]).wait() == wait_all([]) == []
    late = Future()
    every = collect_all([late, failed(KeyError("gone"))])
    assert not every.done()
    late.set_result(1)
    with pytest.raises(KeyError, match="gone"):
        every.wait()


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: Future().then(3), TypeError, "must be callable, not int"),
        (lambda: Future().add_done_callback(None), TypeError, "must be callable, not NoneType"),
        (lambda: Future(devices=["cpu"]), ValueError, "devices"),
        (lambda: collect_all([3]), TypeError, "list of Future, found int"),
        (lambda: pickle.dumps(Future()), RuntimeError, "Can not pickle"),
        (lambda: tg.jit.fork(3), TypeError, "must be a function or a module, not int"),
        (lambda: tg.jit.wait(3), TypeError, "must be a Future, not int"),
        (lambda: tg.jit.fork(lambda: 1 / 0), ZeroDivisionError, "division"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_fork_calls_functions_and_modules():
    later = tg.jit.fork(lambda x, y=1: x + y, tg.ones(2), y=3)
    assert isinstance(later, tg.jit.Future) and later.done() and tg.jit.wait(later).tolist() == [4, 4]
    x = tg.ones(1, requires_grad=True)
    tg.jit.wait(tg.jit.fork(tg.nn.ReLU(), x * 2)).backward()
    assert x.grad == 2


def test_the_names_are_found_under_the_alias(as_torch):
    import torch.futures
    import torch.multiprocessing

    assert torch.futures.Future is Future and torch.jit.fork is tg.jit.fork
    assert torch.multiprocessing.get_context("fork").Queue


def fork_in_script(x):
    return tg.jit.wait(tg.jit.fork(tg.relu, x))


def test_script_takes_it():
    x = tg.randn(3)
    assert tg.equal(tg.jit.script(fork_in_script)(x), fork_in_script(x))


def test_its_type_tells_what_it_holds():
    assert typing.get_origin(Future[int]) is Future and typing.get_args(Future[int]) == (int,)
    assert Future[int]().done() is False
