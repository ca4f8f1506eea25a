"""A small tensor that went comes back as another one, of which nothing tells what it was."""

import gc
import os
import weakref

import hypothesis.strategies as st
import pytest
from hypothesis import given

import tinygrad_ext as tg

SHAPES = [
    (),
    (1,),
    (3,),
    (2, 3),
    (1, 1, 5),
    (2, 1, 2, 2, 1, 3),
    (1, 2, 1, 2, 1, 2, 1),
    (0,),
    (2, 0, 3),
    (16, 16),
    (17, 16),
]
DTYPES = [tg.float32, tg.float64, tg.int64, tg.bool, tg.uint8, tg.float16, tg.complex128]


def written(t):
    t.zero_()


def needing(t):
    t.requires_grad_(t.is_floating_point() or t.is_complex())


def used(t):
    if t.is_floating_point():
        (t.requires_grad_() * 2).sum().backward()


def told(t):
    t.note = "something"


def hooked(t):
    if t.is_floating_point():
        t.requires_grad_().register_hook(lambda g: g)


def referred_to(t):
    t.watcher = weakref.ref(t)


def seen(t):
    return t.view(-1) if t.numel() else t.view(t.shape)


def resized(t):
    t.data = tg.ones(2, 2, dtype=t.dtype)


def lent(t):
    return None if t.dtype == tg.bool else memoryview(t)


def of_a_column(t):
    t.data = tg.ones(4, 4, dtype=t.dtype)[:, 1]


LIVES = [written, needing, used, told, hooked, referred_to, seen, resized, lent, of_a_column]


@given(
    st.lists(
        st.tuples(st.sampled_from(SHAPES), st.sampled_from(DTYPES), st.sampled_from(LIVES), st.booleans()), max_size=6
    ),
    st.sampled_from(SHAPES),
    st.sampled_from(DTYPES),
)
def test_a_new_tensor_is_new(lives, shape, dtype):
    held = []
    for size, of, life, hold in lives:
        t = tg.empty(size, dtype=of)
        rest = life(t)
        if hold:
            held.append((t, rest))
        del t, rest
    made = [tg.empty(shape, dtype=dtype), tg.ones(shape, dtype=dtype), tg.ones(shape, dtype=dtype) == 1]
    assert not any(map(gc.is_tracked, made))  # asked for first: who asks for a __dict__ makes all known
    for t, of in zip(made, (dtype, dtype, tg.bool)):
        assert t.shape == shape and t.dtype == of and t.is_contiguous() and t.numel() == tg.Size(shape).numel()
        assert t.stride() == tg.empty(shape, device="meta").stride()
        assert (t.requires_grad, t.grad, t.grad_fn, t.is_leaf, t._version, t.output_nr) == (
            False,
            None,
            None,
            True,
            0,
            0,
        )
        assert not t.__dict__ and t.name is None and t._base is None and not t._is_view() and not t.is_inference()
        assert t.storage_offset() == 0 and t.untyped_storage().nbytes() == t.nbytes
    assert bool(made[2].all()) and len({t.data_ptr() for t in made if t.numel()}) == (3 if made[0].numel() else 0)


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer build keeps nothing")
def test_what_is_kept_counts_as_cached_and_is_given_back():
    tg.empty_cache()
    before = tg.memory_stats()
    many = [tg.ones(64) for _ in range(100)]
    assert tg.memory_stats()["allocated"] == before["allocated"] + 100 * 256
    del many
    after = tg.memory_stats()
    assert after["allocated"] == before["allocated"] and after["cached"] >= before["cached"] + 100 * 256
    assert after["allocations"] >= before["allocations"] + 100
    tg.empty_cache()
    assert tg.memory_stats()["cached"] == 0 and tg.memory_stats()["allocated"] == before["allocated"]


def test_a_weak_reference_to_what_went_stays_dead():
    t = tg.ones(3)
    r = weakref.ref(t)
    del t
    again = tg.ones(3)
    assert r() is None and again.tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", [tg.nn.Parameter, type("Sub", (tg.Tensor,), {})])
def test_other_types_do_not_come_back_as_tensors(kind):
    for _ in range(3):
        t = tg.ones(4).as_subclass(kind) if kind is not tg.nn.Parameter else kind(tg.ones(4))
        assert type(t) is kind
        del t
        assert type(tg.ones(4)) is tg.Tensor
