"""Rules of autocast that ops of libraries have."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import library, ops
from tinygrad_ext.library import Library


def _op(lib):
    lib.define("scaled(Tensor x, Tensor? n=None, *, float k=2.0) -> Tensor")
    lib.impl("scaled", lambda x, n=None, *, k=2.0: x * k, "CPU")
    return ops.t.scaled


def test_floating_arguments_become_the_dtype_while_autocast_is_on():
    seen = []
    with Library("t", "FRAGMENT") as lib:
        lib.define("seen(Tensor x, Tensor[] more, Tensor n) -> Tensor")

        def kernel(x, more, n):
            seen.append(
                (x.dtype, more[0].dtype, n.dtype, tg.is_autocast_enabled("cpu"), (tg.ones(2, 2) @ tg.ones(2, 2)).dtype)
            )
            return x.clone()

        lib.impl("seen", kernel, "CPU")
        library.register_autocast("t::seen", "cpu", tg.float16, lib=lib)
        args = tg.ones(2), [tg.ones(2)], tg.ones(2, dtype=tg.int64)
        assert ops.t.seen(*args).dtype == tg.float32
        with tg.autocast("cpu", dtype=tg.bfloat16):
            assert ops.t.seen(*args).dtype == tg.float16
        assert seen[0][:3] == (tg.float32, tg.float32, tg.int64)
        assert seen[1] == (tg.float16, tg.float16, tg.int64, False, tg.float32)


def test_of_a_custom_op_with_its_gradient():
    @library.custom_op("t::twice", mutates_args=())
    def twice(x: tg.Tensor) -> tg.Tensor:
        return x * 2

    twice.register_autograd(lambda ctx, grad: grad * 2)
    twice.register_autocast("cpu", tg.bfloat16)
    x = tg.ones(3, requires_grad=True)
    with tg.autocast("cpu"):
        y = twice(x)
    assert y.dtype == tg.bfloat16
    y.sum().backward()
    assert x.grad.dtype == tg.float32 and x.grad.tolist() == [2, 2, 2]


def test_a_function_for_the_key_comes_in_place_of_the_op():
    with Library("t", "FRAGMENT") as lib:
        scaled = _op(lib)
        lib.impl("scaled", lambda x, n=None, *, k: scaled(x.to(tg.bfloat16), n, k=k * 10), "AutocastCPU")
        assert scaled(tg.ones(1), k=3).item() == 3
        with tg.autocast("cpu"):
            out = scaled(tg.ones(1), k=3)
            assert out.dtype == tg.bfloat16 and out.item() == 30
            with tg.autocast("cpu", enabled=False):
                assert scaled(tg.ones(1), k=3).item() == 3
        with pytest.raises(RuntimeError, match="t::scaled: there is a rule of autocast for the device 'cpu' already"):
            lib.impl("scaled", lambda x, n=None, *, k: x, "AutocastCPU")
        lib.impl("scaled", lambda x, n=None, *, k: x, "AutocastCPU", allow_override=True)
        with tg.autocast("cpu"):
            assert scaled(tg.ones(1), k=3).item() == 1


def test_a_rule_goes_with_its_library():
    with Library("t", "FRAGMENT") as lib:
        scaled = _op(lib)
        with Library("t", "FRAGMENT") as rules:
            library.register_autocast("t::scaled", "cpu", tg.bfloat16, lib=rules)
            with tg.autocast("cpu"):
                assert scaled(tg.ones(1)).dtype == tg.bfloat16
        with tg.autocast("cpu"):
            assert scaled(tg.ones(1)).dtype == tg.float32


def test_what_is_refused():
    with Library("t", "FRAGMENT") as lib:
        _op(lib)
        library.register_autocast("t::scaled", "cuda", tg.float16)
        with pytest.raises(ValueError, match="Device type 'meta' does not support autocast"):
            library.register_autocast("t::scaled", "meta", tg.float16)
        with pytest.raises(ValueError, match="device_type must be a string such as 'cpu', not 3"):
            library.register_autocast("t::scaled", 3, tg.float16)
        with pytest.raises(
            TypeError, match="cast_inputs must be a floating dtype such as torch.bfloat16, not torch.int64"
        ):
            library.register_autocast("t::scaled", "cpu", tg.int64)
        with pytest.raises(RuntimeError, match="register_autocast: there is no op 't::other'"):
            library.register_autocast("t::other", "cpu", tg.float16)
