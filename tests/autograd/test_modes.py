"""Grad modes as context managers and as decorators."""

import threading

import pytest

import tinygrad_ext as tg


def test_no_grad_and_enable_grad_nest():
    x = tg.ones(1, requires_grad=True)
    with tg.no_grad():
        assert not (x * 1).requires_grad
        with tg.enable_grad():
            assert (x * 1).requires_grad
        assert not tg.is_grad_enabled()
    assert (x * 1).requires_grad


def test_one_object_may_be_entered_twice():
    mode = tg.no_grad()
    with mode:
        with mode:
            pass
        assert not tg.is_grad_enabled()
    assert tg.is_grad_enabled()


@pytest.mark.parametrize(
    "decorator",
    [
        lambda: tg.no_grad(),
        lambda: tg.no_grad,
        lambda: tg.set_grad_enabled(False),
        lambda: tg.inference_mode(),
        lambda: tg.inference_mode,
    ],
)
def test_decorators_with_and_without_brackets(decorator):
    @decorator()
    def double(x):
        """Twice."""
        return x * 2

    assert tg.is_grad_enabled()
    assert not double(tg.ones(1, requires_grad=True)).requires_grad
    assert double.__name__ == "double" and tg.is_grad_enabled()


def test_a_decorated_generator_does_not_leak_its_mode():
    @tg.no_grad()
    def steps(x):
        for _ in range(2):
            received = yield (x * 2).requires_grad
            assert received is None and not tg.is_grad_enabled()

    for recorded in steps(tg.ones(1, requires_grad=True)):
        assert not recorded and tg.is_grad_enabled()


def test_an_exception_restores_the_mode():
    with pytest.raises(ValueError), tg.no_grad():
        raise ValueError
    assert tg.is_grad_enabled()


def test_set_grad_enabled_works_as_a_function_and_as_a_block():
    tg.set_grad_enabled(False)
    assert not tg.is_grad_enabled()
    tg.set_grad_enabled(True)
    with tg.set_grad_enabled(False):
        assert not tg.is_grad_enabled()
    assert tg.is_grad_enabled()
    with pytest.raises(TypeError, match="bool"):
        tg.set_grad_enabled("no")


def test_modes_belong_to_their_thread():
    seen = []
    with tg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_classes_are_decorated_with_a_warning():
    class Seen:
        def __init__(self):
            self.made = tg.is_grad_enabled()

        def now(self):
            return tg.is_grad_enabled()

    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        decorated = tg.no_grad()(Seen)
    seen = decorated()
    assert isinstance(seen, Seen) and not seen.made and seen.now()


def test_inference_tensors_stay_out_of_graphs():
    w = tg.ones(2, requires_grad=True)
    with tg.inference_mode():
        t = tg.ones(2) * 2
        assert tg.is_inference_mode_enabled() and t.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        w * t
    assert (w * t.clone()).requires_grad
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        t.add_(1)


def test_anomaly_mode_finds_the_nan_and_its_forward():
    x = tg.tensor([-1.0], requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection"), tg.autograd.detect_anomaly():
        y = x.sqrt()
        with (
            pytest.warns(UserWarning, match="test_modes.py"),
            pytest.raises(RuntimeError, match="SqrtBackward0' returned nan values in its 0th output"),
        ):
            y.backward()
    assert not tg.is_anomaly_enabled()


def test_anomaly_mode_shows_where_the_forward_of_a_failing_node_was():
    x = tg.ones(2, requires_grad=True)
    with tg.autograd.set_detect_anomaly(True):
        y = x * 2
        z = y * y
        y.add_(1)
        with (
            pytest.warns(UserWarning, match="Error detected in MulBackward0"),
            pytest.raises(RuntimeError, match="inplace"),
        ):
            z.sum().backward()


@pytest.mark.parametrize("mode", [tg.no_grad, tg.enable_grad, tg.inference_mode])
def test_one_object_may_be_entered_again_inside_itself(mode):
    before, block = tg.is_grad_enabled(), mode()
    with block:
        inside = tg.is_grad_enabled(), tg.is_inference_mode_enabled()
        with block, block:
            assert (tg.is_grad_enabled(), tg.is_inference_mode_enabled()) == inside
        assert (tg.is_grad_enabled(), tg.is_inference_mode_enabled()) == inside
    assert tg.is_grad_enabled() is before and not tg.is_inference_mode_enabled()


def test_a_mode_is_left_no_more_often_than_entered():
    with pytest.raises(IndexError, match="no_grad is left more often than it was entered"):
        tg.no_grad().__exit__(None, None, None)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: tg.no_grad(1, 2), "takes at most 1 argument, 'fn', but 2 were given"),
        (lambda: tg.inference_mode(on=True), "unexpected argument 'on'; its only one is 'mode'"),
    ],
)
def test_modes_name_the_argument_they_take(call, says):
    with pytest.raises(TypeError, match=says):
        call()


def test_a_switch_entered_twice_brings_back_what_it_found_when_it_was_made():
    switch = tg.set_grad_enabled(False)
    with switch:
        with switch:
            assert not tg.is_grad_enabled()
        assert tg.is_grad_enabled()
    assert tg.is_grad_enabled()
