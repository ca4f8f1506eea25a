"""Tensors that their own attributes lead back to: pickled, copied and saved."""

import copy
import io
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


class Marked(tg.Tensor):
    pass


class Slotted(tg.Tensor):
    __slots__ = ("owner",)


class Told(tg.Tensor):
    def __getstate__(self):
        return {"note": self.note, "itself": self}

    def __setstate__(self, state):
        self.note, self.given = state["note"] + "!", state["itself"]


class Holder:
    def __init__(self, t):
        self.t = t


def saved(obj):
    file = io.BytesIO()
    tg.save(obj, file, format="object")
    file.seek(0)
    return tg.load(file, weights_only=False)


KINDS = {
    "tensor": lambda: tg.ones(3),
    "parameter": lambda: nn.Parameter(tg.ones(3)),
    "subclass": lambda: tg.ones(3).as_subclass(Marked),
    "parameter of a subclass": lambda: nn.Parameter(tg.ones(3).as_subclass(Marked)),
    "sparse": lambda: tg.ones(3).to_sparse(),
    "rows": lambda: tg.ones(3, 3).to_sparse_csr(),
}


@pytest.mark.parametrize("through", (lambda t: pickle.loads(pickle.dumps(t)), copy.deepcopy, saved))
@pytest.mark.parametrize("kind", KINDS)
def test_attributes_may_lead_back(kind, through):
    t = KINDS[kind]()
    t.itself, t.among, t.held, t.beside = t, [{"t": t}], Holder(t), tg.zeros(1)
    t.beside.of = t
    again = through(t)
    assert type(again) is type(t) and again is not t and again.shape == t.shape
    if (kind, through) == ("parameter", copy.deepcopy):  # the numbers alone, as PyTorch copies one
        return
    assert again.itself is again.among[0]["t"] is again.held.t is again.beside.of is again


def test_slots_may_lead_back():
    t = tg.ones(2).as_subclass(Slotted)
    t.owner, t.other = t, 3
    for again in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t)):
        assert again.owner is again and again.other == 3


def test_a_class_says_its_state_itself():
    t = tg.ones(2).as_subclass(Told)
    t.note, t.left = "a", 1
    again = pickle.loads(pickle.dumps(t))
    assert again.note == "a!" and again.given is again and not hasattr(again, "left")
    assert copy.copy(t).note == "a!"


def test_pytorch_reads_what_leads_back():
    torch = pytest.importorskip("torch")
    t = tg.arange(3.0)
    t.itself = t
    file = io.BytesIO()
    tg.save({"t": t}, file, format="object")
    file.seek(0)
    again = torch.load(file, weights_only=False)["t"]
    assert again.itself is again and again.tolist() == [0, 1, 2]


def test_our_files_refuse_it():
    t = tg.ones(1)
    t.itself = [t]
    for format in ("safetensors", "torch"):
        with pytest.raises(ValueError, match="is a tensor among its own attributes"):
            tg.save({"t": t}, io.BytesIO(), format=format)
