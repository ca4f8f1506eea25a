"""Devices of other machines are objects: they compare, hash, print and pickle; what asks for memory on one raises."""

import copy
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn

ELSEWHERE = ["cuda", "mps", "xpu", "hip", "xla", "hpu", "mtia", "privateuseone"]


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_a_device_of_another_machine_can_be_named(kind):
    plain, first = tg.device(kind), tg.device(f"{kind}:1")
    assert (plain.type, plain.index, first.type, first.index) == (kind, None, kind, 1)
    assert first == tg.device(kind, 1) == tg.device(type=kind, index=1) and hash(first) == hash(tg.device(kind, 1))
    assert plain != first and plain != tg.device(kind, 0) and plain != tg.device("cpu")
    assert (str(first), repr(plain), repr(first)) == (
        f"{kind}:1",
        f"device(type='{kind}')",
        f"device(type='{kind}', index=1)",
    )
    for d in (plain, first):
        assert pickle.loads(pickle.dumps(d)) == copy.deepcopy(d) == tg.device(d) == d


@pytest.mark.parametrize(
    "ask",
    [
        lambda d: tg.ones(2, device=d),
        lambda d: tg.empty(2, device=tg.device(d)),
        lambda d: tg.tensor([1], device=d),
        lambda d: tg.as_tensor([1], device=d),
        lambda d: tg.asarray([1], device=d),
        lambda d: tg.arange(3, device=d),
        lambda d: tg.randn(3, device=d),
        lambda d: tg.empty_like(tg.ones(2), device=d),
        lambda d: tg.ones(2).new_tensor([1], device=d),
        lambda d: tg.ones(2).to(d),
        lambda d: nn.Linear(1, 1).to(d),
        lambda d: nn.Linear(1, 1, device=d),
    ],
)
def test_memory_on_it_is_refused_when_it_is_asked_for(ask):
    for d in ("cuda", "cuda:1", "xpu"):
        with pytest.raises(AssertionError, match=r"not compiled with (CUDA|XPU) enabled.*Use device='cpu'"):
            ask(d)
    with pytest.raises(NotImplementedError, match="not compiled with XLA enabled"):
        ask("xla")


def test_a_device_is_a_context_in_which_factories_use_it():
    with tg.device("meta") as entered:
        assert entered == tg.device("meta") and tg.ones(2).is_meta
    with tg.device("cuda"):
        kept = tg.ones(2, device="cpu")
        with pytest.raises(AssertionError, match="CUDA"):
            tg.ones(2)
    assert kept.device.type == tg.ones(1).device.type == "cpu"


def test_code_that_chooses_a_device_ends_on_the_cpu():
    chosen = tg.device("cuda" if tg.cuda.is_available() else "cpu")
    assert tg.ones(2).to(chosen).device == chosen
    assert tg.ones(2).device != tg.device("cuda")


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.device("nowhere"),
        lambda t: t.device(""),
        lambda t: t.device("cuda:"),
        lambda t: t.device("cuda:x"),
        lambda t: t.device("cuda:-1"),
        lambda t: t.device("cuda:01"),
        lambda t: t.device("cuda:1:2"),
        lambda t: t.device("cuda:0", 1),
        lambda t: t.device("cuda", -1),
        lambda t: t.device("cuda", "1"),
        lambda t: t.device("cuda", True),
        lambda t: t.device(),
        lambda t: t.device(None),
        lambda t: t.device(device="cpu", index=0),
        lambda t: t.device(device="cpu", type="cpu"),
        lambda t: t.device("cuda") < t.device("cpu"),
        lambda t: setattr(t.device("cuda"), "type", "cpu"),
        lambda t: setattr(t.device("cuda"), "new", 1),
    ],
)
def test_what_is_no_device_is_refused_as_pytorch_does(make):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    with pytest.raises(Exception) as wanted:
        make(torch)
    with pytest.raises(type(wanted.value)) as got:
        make(tg)
    assert type(got.value) is type(wanted.value)


@pytest.mark.parametrize("given", ["cpu", "meta", "cuda:1", tg.device("cpu")], ids=str)
def test_a_device_may_be_given_by_its_keyword(given):
    assert tg.device(device=given) == tg.device(given)


def test_a_file_is_not_loaded_to_a_device_that_is_not_here(tmp_path):
    tg.save({"on": tg.device("cuda:1")}, tmp_path / "x.safetensors")
    assert tg.load(tmp_path / "x.safetensors")["on"] == tg.device("cuda", 1)
    with pytest.raises(RuntimeError, match="deserialize object on cuda"):
        tg.load(tmp_path / "x.safetensors", map_location="cuda")


@pytest.mark.parametrize(
    "call",
    [
        lambda: tg.device(0),
        lambda: tg.ones(2, device=0),
        lambda: tg.empty(2, device=3),
        lambda: tg.tensor([1.0], device=0),
        lambda: tg.zeros_like(tg.ones(2), device=0),
        lambda: tg.ones(2).to(0),
        lambda: tg.nn.Linear(2, 2, device=0),
        lambda: tg.nn.Linear(2, 2).to(0),
    ],
)
def test_a_number_alone_is_that_of_an_accelerator(call):
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available: . alone"):
        call()
