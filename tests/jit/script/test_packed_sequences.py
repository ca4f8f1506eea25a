"""Recurrent layers over packed sequences in script: the ops `lstm.data`, `gru.data`, `rnn_tanh.data` and the like."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence, pad_sequence

LAYERS = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "rnn_tanh": nn.RNN,
    "rnn_relu": lambda *args, **more: nn.RNN(*args, nonlinearity="relu", **more),
}


class Packed(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x: PackedSequence, hx: tg.Tensor | None = None) -> tuple[PackedSequence, tg.Tensor]:
        return self.layer(x, hx)


class PackedPair(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(
        self, x: PackedSequence, hx: tuple[tg.Tensor, tg.Tensor] | None = None
    ) -> tuple[PackedSequence, tuple[tg.Tensor, tg.Tensor]]:
        return self.layer(x, hx)


def flat(parts):
    return [x for part in parts for x in (flat(part) if isinstance(part, tuple) else [part])]


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("both, enforce, given", [(True, False, True), (False, True, False), (True, True, False)])
def test_script_gives_what_eager_mode_gives(kind, both, enforce, given, tmp_path):
    layer = LAYERS[kind](4, 3, num_layers=2, bidirectional=both)
    scripted = jit.script((PackedPair if kind == "lstm" else Packed)(layer))
    jit.save(scripted, tmp_path / "packed.pt")
    loaded = jit.load(tmp_path / "packed.pt")
    for lengths in ((5, 3, 2), (4, 4), (1,)):
        rows = [tg.randn(n, 4) for n in lengths]
        packed = pack_sequence(rows if enforce else rows[::-1], enforce_sorted=enforce)
        state = tg.randn(2 * (1 + both), len(lengths), 3)
        hx = None if not given else (state, state * 2) if kind == "lstm" else state
        wanted, results = layer(packed, hx), [scripted(packed, hx), loaded(packed, hx)]
        gradients = []
        for result in (wanted, *results):
            layer.zero_grad()
            loaded.zero_grad()
            result[0].data.square().sum().backward()
            gradients.append(
                [(p if p.grad is not None else q).grad for p, q in zip(layer.parameters(), loaded.parameters())]
            )
        for result, found in zip(results, gradients[1:]):
            assert type(result[0]) is PackedSequence
            for a, b in zip(flat(wanted), flat(result)):
                assert (a is b is None) or a.equal(b)
            assert all(a.equal(b) for a, b in zip(gradients[0], found))


def test_sequences_are_padded_packed_and_unpacked_in_script():
    def program(rows: list[tg.Tensor], padding_side: str):
        packed = pack_sequence(rows, enforce_sorted=False)
        padded, lengths = pad_packed_sequence(packed, True, -1.0)
        return packed, padded, lengths, pad_sequence(rows, True, 0.5, padding_side)

    rows = [tg.randn(n, 3) for n in (2, 4, 1)]
    for side in ("left", "right"):
        for wanted, found in zip(flat(program(rows, side)), flat(jit.script(program)(rows, side)), strict=True):
            assert found.equal(wanted)
