"""Tensors of subclasses in files of objects, which name PyTorch's functions: who names the class safe reads them."""

import copy
import io
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, serialization
from tinygrad_ext.utils._pytree import tree_map


class Marked(tg.Tensor):
    pass


class Slotted(tg.Tensor):
    __slots__ = ("unit",)


class Told(tg.Tensor):
    def __getstate__(self):
        return {"note": self.note}

    def __setstate__(self, state):
        self.note = state["note"] + "!"


class Wrapper(tg.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return tg.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=inner.device, requires_grad=inner.requires_grad
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = tree_map(lambda x: x.inner if isinstance(x, cls) else x, (args, kwargs or {}))
        return tree_map(lambda x: cls(x) if isinstance(x, tg.Tensor) else x, func(*inner[0], **inner[1]))


CLASSES = [Marked, Slotted, Told, Wrapper]


def marked(obj):
    obj.note = "a"
    return obj


def made():
    slotted = tg.arange(4.0)[1:3].as_subclass(Slotted)
    slotted.unit = "m"
    return {
        "marked": marked(tg.arange(4.0)[1:3].as_subclass(Marked)),
        "bare": tg.ones(2, requires_grad=True).as_subclass(Marked).detach().requires_grad_(),
        "slotted": marked(slotted),
        "told": marked(tg.ones(2).as_subclass(Told)),
        "parameter": marked(nn.Parameter(tg.ones(2).as_subclass(Marked))),
        "frozen": nn.Parameter(tg.ones(2).as_subclass(Marked), requires_grad=False),
        "wrapper": marked(Wrapper(tg.ones(2))),
        "wrapped parameter": nn.Parameter(Wrapper(tg.ones(2))),
        "meta": tg.ones(2, device="meta").as_subclass(Marked),
        "turned": tg.tensor([1j]).conj().as_subclass(Marked),
    }


@pytest.mark.parametrize("kind", made())
@pytest.mark.parametrize("safe", (True, False), ids=("named safe", "whatever it names"))
def test_a_subclass_comes_back(kind, safe):
    t, file = made()[kind], io.BytesIO()
    tg.save([t, t], file, format="object")
    file.seek(0)
    if safe:
        with serialization.safe_globals(CLASSES):
            again, twice = tg.load(file)
    else:
        again, twice = tg.load(file, weights_only=False)
    assert (
        again is twice and isinstance(again, type(t)) and isinstance(again, nn.Parameter) == isinstance(t, nn.Parameter)
    )
    assert (again.shape, again.dtype, again.device, again.requires_grad) == (
        t.shape,
        t.dtype,
        t.device,
        t.requires_grad,
    )
    if hasattr(t, "note"):
        assert again.note == ("a!" if kind == "told" else "a")
    assert getattr(again, "unit", None) == getattr(t, "unit", None) and not hasattr(again, "_is_param")
    if kind.startswith("wrap"):
        again, t = again.inner, t.inner
    assert t.is_meta or again.tolist() == t.tolist()


def test_a_class_that_nobody_named_safe_is_refused():
    for kind in ("marked", "wrapper"):
        file = io.BytesIO()
        tg.save(made()[kind], file, format="object")
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError):
            tg.load(file)


def test_a_subclass_shares_its_memory_with_others():
    whole = tg.arange(4.0)
    file = io.BytesIO()
    tg.save({"whole": whole, "part": whole[1:3].as_subclass(Marked)}, file, format="object")
    file.seek(0)
    with serialization.safe_globals(CLASSES):
        again = tg.load(file)
    again["part"].zero_()
    assert again["whole"].tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize(
    "through", (lambda t: pickle.loads(pickle.dumps(t)), copy.deepcopy), ids=("pickle", "deepcopy")
)
def test_copies_of_wrappers_say_their_device(through):
    again = through(Wrapper(tg.ones(3)))
    assert again.device.type == "cpu" and again.inner.tolist() == [1, 1, 1] and type(again + 1) is Wrapper
    assert isinstance(through(nn.Parameter(Wrapper(tg.ones(3)))), nn.Parameter)
