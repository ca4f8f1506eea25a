"""Packed sequences in programs that are traced and scripted: sizes that hang on the elements of an argument."""

import io

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.graph.capture import CaptureError
from tinygrad_ext.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SIZES = [(3, [1, 4, 2]), (2, [3, 5]), (1, [4]), (4, [1, 2, 3, 6])]
WAYS = {"trace": lambda module: jit.trace(module, example(module)), "script": jit.script}


class Layer(nn.Module):
    def __init__(self, kind, batch_first):
        super().__init__()
        self.layer = getattr(nn, kind)(2, 3, num_layers=2, batch_first=batch_first, bidirectional=True)
        self.batch_first: bool = batch_first

    def forward(self, x, lengths):
        y, last = self.layer(pack_padded_sequence(x, lengths, self.batch_first, False))
        return pad_packed_sequence(y, self.batch_first, 0.5, 8), last


def rows(module, batch):
    return tg.randn(batch, 6, 2) if module.batch_first else tg.randn(6, batch, 2)


def example(module):
    return rows(module, 3).requires_grad_(), tg.tensor([2, 6, 2])


def flat(value):
    return [t for part in value for t in flat(part)] if isinstance(value, tuple) else [value]


def filed(program):
    file = io.BytesIO()
    jit.save(program, file)
    file.seek(0)
    return jit.load(file)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_programs_take_other_lengths_than_the_examples(kind, batch_first, way):
    module = Layer(kind, batch_first)
    program = WAYS[way](module)
    for found in (program, filed(program)):
        for batch, lengths in SIZES:
            x, lengths = rows(module, batch).requires_grad_(), tg.tensor(lengths)
            expected, made = flat(module(x, lengths)), flat(found(x, lengths))
            assert [t.tolist() for t in made] == [t.tolist() for t in expected]
            grads = [tg.autograd.grad(sum(t.sin().sum() for t in r), x)[0] for r in (made, expected)]
            np.testing.assert_allclose(*[g.numpy() for g in grads], rtol=1e-5, atol=1e-6)
    if way == "trace":
        assert len(program._runner.graphs) == 1


def test_lengths_that_do_not_fit_are_refused_when_the_program_runs():
    traced = jit.trace(lambda x, n: pack_padded_sequence(x, n).data, (tg.ones(3, 2), tg.tensor([3, 1])))
    assert traced(tg.ones(4, 3), tg.tensor([4, 1, 1])).shape == (6,)
    with pytest.raises(RuntimeError, match="decreasing order"):
        traced(tg.ones(3, 2), tg.tensor([1, 2]))


def test_a_number_that_was_read_of_a_tensor_is_a_size():
    traced = jit.trace(lambda x, n: tg.zeros(n.item(), 2) + x, (tg.ones(2), tg.tensor(3)))
    assert traced(tg.ones(2), tg.tensor(5)).tolist() == [[1, 1]] * 5


def test_a_gradient_through_packed_sequences_is_taken_while_it_is_traced():
    def loss(x, lengths):
        packed = pack_padded_sequence(x * x, lengths)
        return pad_packed_sequence(packed._replace(data=packed.data.tanh()), total_length=5)[0].square().sum()

    def step(x, lengths):
        (first,) = tg.autograd.grad(loss(x, lengths), x, create_graph=True)
        return first, tg.autograd.grad(first.square().sum(), x)[0]

    x, lengths = tg.randn(3, 2, requires_grad=True), tg.tensor([3, 1])
    traced = jit.trace(step, (x, lengths))
    assert len(traced._runner.graphs) == 1
    for given in ((x, lengths), (tg.randn(5, 3, requires_grad=True), tg.tensor([4, 4, 2]))):
        assert all(map(tg.equal, traced(*given), step(*given)))
    assert len(traced._runner.graphs) == 1


@pytest.mark.parametrize("asked", [lambda z, x: z.backward(), lambda z, x: tg.autograd.grad(z, x)])
def test_a_gradient_through_a_layer_that_is_called_whole_is_refused_while_it_is_traced(asked):
    layer = nn.GRU(2, 3)

    def step(x, lengths):
        asked(layer(pack_padded_sequence(x * 2, lengths))[0].data.sum(), x)

    with pytest.raises(RuntimeError, match=r"gru\.data reads elements: a graph calls it whole"):
        jit.trace(step, (tg.ones(3, 2, 2, requires_grad=True), tg.tensor([3, 1])))


def test_what_draws_numbers_is_not_called_whole():
    layer = nn.LSTM(2, 3, 2, dropout=0.5)
    state = tg.get_rng_state()
    with pytest.raises(CaptureError, match=r"aten::lstm\.data reads elements and draws numbers"):
        jit.trace(lambda x, n: layer(pack_padded_sequence(x, n))[1], (tg.ones(3, 2, 2), tg.tensor([3, 1])))
    assert tg.equal(state, tg.get_rng_state())
