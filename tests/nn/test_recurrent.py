"""Recurrent layers and packed sequences: beside PyTorch with the same seed, and by what must hold without it."""

import io
import warnings

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.nn.utils import rnn
from tinygrad_ext.ops.fused import fused

try:
    import torch
except ImportError:
    torch = None

beside_torch = pytest.mark.skipif(torch is None, reason="compares with PyTorch: pip install torch==2.13.0")
KINDS = ("RNN", "GRU", "LSTM")
SETTINGS = [
    {},
    {"num_layers": 2, "bidirectional": True},
    {"bias": False, "batch_first": True},
    {"num_layers": 3, "dropout": 0.0, "batch_first": True, "bidirectional": True},
]


def pair(name, *args, **kwargs):
    tg.manual_seed(3)
    ours = getattr(nn, name)(*args, **kwargs)
    torch.manual_seed(3)
    return ours, getattr(torch.nn, name)(*args, **kwargs)


def both(*shape):
    values = np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")
    return tg.from_numpy(values.copy()).requires_grad_(), torch.from_numpy(values.copy()).requires_grad_()


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, (tuple, list)) else [value]


def agree(ours, theirs, leaves=()):
    """Results, and gradients of the leaves with respect to their sum of squares."""
    ours, theirs = [[t for t in flat(v) if t is not None] for v in (ours, theirs)]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=2e-6)
    if leaves:
        for found in (ours, theirs):
            sum((t * t).sum() for t in found if t.dtype.is_floating_point).backward()
        for a, b in leaves:
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)


@beside_torch
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [*SETTINGS, {"proj_size": 2, "num_layers": 2, "bidirectional": True}], ids=str)
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_layers_equal_pytorchs(kind, settings, given):
    if "proj_size" in settings and kind != "LSTM":
        settings = {**settings, "proj_size": 0}
        settings.pop("proj_size")
    ours, theirs = pair(kind, 3, 4, **settings)
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    for (_, a), b in zip(ours.named_parameters(), theirs.parameters()):
        assert a.tolist() == b.tolist()
    x, y = both(5, 2, 3)
    count, batch = ours.num_layers * (1 + ours.bidirectional), 5 if ours.batch_first else 2
    state = [both(count, batch, ours.proj_size or 4), both(count, batch, 4)][: 1 + (kind == "LSTM")] if given else []
    hx = [None, None] if not given else [tuple(s[i] for s in state) if kind == "LSTM" else state[0][i] for i in (0, 1)]
    pairs = [(x, y), *state, *zip(ours.parameters(), theirs.parameters())]
    agree(ours(x, hx[0]), theirs(y, hx[1]), pairs)
    one = [ours.double()(tg.ones(6, 3, dtype=tg.float64)), theirs.double()(torch.ones(6, 3, dtype=torch.float64))]
    agree(*one)


@beside_torch
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("enforce", [True, False])
def test_packed_sequences_equal_pytorchs(kind, settings, enforce):
    ours, theirs = pair(kind, 3, 4, **settings)
    lengths = [5, 3, 3, 1] if enforce else [3, 1, 5, 3]
    x, y = both(4, 5, 3) if ours.batch_first else both(5, 4, 3)
    packed = rnn.pack_padded_sequence(x, lengths, ours.batch_first, enforce)
    wanted = torch.nn.utils.rnn.pack_padded_sequence(y, lengths, ours.batch_first, enforce)
    agree(list(packed), list(wanted))
    out, last = ours(packed)
    expected, end = theirs(wanted)
    padded, sizes = rnn.pad_packed_sequence(out, ours.batch_first, -1.0, 6)
    told, count = torch.nn.utils.rnn.pad_packed_sequence(expected, ours.batch_first, -1.0, 6)
    assert sizes.tolist() == count.tolist() == lengths
    agree([padded, last], [told, end], [(x, y), *zip(ours.parameters(), theirs.parameters())])


@beside_torch
@pytest.mark.parametrize("settings", [{}, {"bias": False}], ids=str)
@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells_equal_pytorchs(kind, settings):
    ours, theirs = pair(kind, 3, 4, **settings)
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    (x, y), (h, k), (c, d) = both(2, 3), both(2, 4), both(4, 2)
    c, d = c.t(), d.t()
    states = [None, None] if kind is None else [(h, c), (k, d)] if kind == "LSTMCell" else [h, k]
    agree(ours(x), theirs(y))
    agree(ours(x, states[0]), theirs(y, states[1]), [(x, y), (h, k), *zip(ours.parameters(), theirs.parameters())])
    agree(ours(x[0]), theirs(y[0]))
    assert repr(nn.RNNCell(2, 3, False, "relu")) == repr(torch.nn.RNNCell(2, 3, False, "relu"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_its_cell_step_by_step(kind):
    layer, cell = getattr(nn, kind)(3, 4), getattr(nn, kind + "Cell")(3, 4)
    cell.load_state_dict({name.removesuffix("_l0"): w for name, w in layer.state_dict().items()})
    x, state, rows = tg.randn(6, 2, 3), None, []
    for row in x:
        state = cell(row, state)
        rows.append(state[0] if kind == "LSTM" else state)
    out, last = layer(x)
    assert tg.allclose(out, tg.stack(rows), atol=1e-6)
    for found, wanted in zip(flat(last), flat(state)):
        assert tg.allclose(found[0], wanted, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_packing_is_each_sequence_alone(kind):
    layer = getattr(nn, kind)(2, 3, num_layers=2, bidirectional=True)
    sequences = [tg.randn(n, 2) for n in (2, 4, 1)]
    out, _ = layer(rnn.pack_sequence(sequences, enforce_sorted=False))
    for found, sequence in zip(rnn.unpack_sequence(out), sequences):
        assert tg.allclose(found, layer(sequence)[0], atol=1e-6)


def test_sequences_are_padded_on_either_side_and_come_back():
    sequences = [tg.tensor([1.0, 2.0]), tg.tensor([3.0])]
    assert rnn.pad_sequence(sequences).tolist() == [[1, 3], [2, 0]]
    assert rnn.pad_sequence(sequences, True, 9, "left").tolist() == [[1, 2], [9, 3]]
    back = rnn.unpad_sequence(rnn.pad_sequence(sequences), tg.tensor([2, 1]))
    assert [t.tolist() for t in back] == [[1, 2], [3]]
    packed = rnn.pack_sequence(sequences)
    assert packed.data.tolist() == [1, 3, 2] and packed.batch_sizes.tolist() == [2, 1]
    assert packed.double().data.dtype == tg.float64 and packed.to(tg.float32) is packed and not packed.is_cuda
    assert rnn.invert_permutation(tg.tensor([2, 0, 1])).tolist() == [1, 2, 0] and rnn.invert_permutation(None) is None


@pytest.mark.parametrize("kind", KINDS)
def test_steps_that_no_sequence_reaches_change_nothing(kind):
    layer, data = getattr(nn, kind)(3, 4, bidirectional=True), tg.randn(3, 3)
    (wanted, *_), last = layer(rnn.PackedSequence(data, tg.tensor([2, 1])))
    (given, sizes, *_), end = layer(rnn.PackedSequence(data, tg.tensor([2, 1, 0, 0])))
    assert tg.equal(given, wanted) and sizes.tolist() == [2, 1, 0, 0]
    for a, b in zip(end if kind == "LSTM" else [end], last if kind == "LSTM" else [last]):
        assert tg.equal(a, b)
    for wrong in ([0], [2, 0, 1], [2, 2, -1]):
        with pytest.raises(RuntimeError, match="batch_sizes"):
            layer(rnn.PackedSequence(data, tg.tensor(wrong)))


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_between_layers_is_for_training_only(kind):
    layer = getattr(nn, kind)(3, 4, num_layers=2, dropout=0.5)
    x = tg.randn(4, 2, 3)
    assert not tg.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert tg.equal(layer(x)[0], layer(x)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_traced_with_their_gradient(kind):
    layer = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True)
    traced = jit.trace(layer, (tg.randn(5, 2, 3),))
    for batch in (2, 3):
        x = tg.randn(5, batch, 3, requires_grad=True)
        found, wanted = traced(x), layer(x)
        for a, b in zip(flat(found), flat(wanted)):
            assert a.tolist() == b.tolist()
        grads = [tg.autograd.grad(flat(out)[0].square().sum(), x)[0] for out in (found, wanted)]
        assert tg.allclose(*grads, atol=1e-6)


class Mixed(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rnn = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.cell = getattr(nn, kind + "Cell")(3, 4)
        self.kind = kind

    def forward(self, x):
        out, state = self.rnn(x)
        again, _ = self.rnn(x + 1, state)
        last = self.cell(x[0])
        return out, again, self.cell(x[1], last)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_compiled_and_run_from_a_file(kind):
    model = Mixed(kind)
    compiled = jit.script(model)
    file = io.BytesIO()
    jit.save(compiled, file)
    loaded = jit.load(io.BytesIO(file.getvalue()))
    for batch in (2, 3):
        x = tg.randn(batch, 5, 3)
        for program in (compiled, loaded):
            for found, wanted in zip(flat(program(x)), flat(model(x)), strict=True):
                assert found.tolist() == wanted.tolist()


def test_weights_of_a_batch_of_models():
    layer = nn.GRU(2, 3)
    x = tg.randn(4, 5, 1, 2)
    one_by_one = tg.stack([layer(row)[0] for row in x])
    assert tg.allclose(tg.vmap(lambda row: layer(row)[0])(x), one_by_one, atol=1e-6)


@pytest.mark.parametrize("width", [5, 16, 40])
@pytest.mark.parametrize("name", ["_lstm_steps", "_gru_steps", "_elman_steps"])
def test_a_sequence_has_the_same_bits_whatever_stands_beside_it(name, width):
    parts, states = {"_lstm_steps": (4, 2), "_gru_steps": (3, 1), "_elman_steps": (1, 1)}[name]
    x, *state = (tg.randn(*n) for n in ((3, 40, parts * width), *[(1, 40, width)] * states))
    rest = (False, (), False) if name == "_elman_steps" else ((), False)
    own, weight = tg.eye(parts * width), tg.randn(parts * width, width)  # a product with ones and zeros is exact

    def run(count):
        return getattr(fused, name)(x[:, :count], *(s[:, :count] for s in state), own, weight, None, None, *rest)[0]

    for count in (1, 2, 3, 5, 7, 8, 11):
        assert run(count).tolist() == run(40)[:, :count].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_threads_changes_no_bit_of_gradients(kind):
    layer, x = getattr(nn, kind)(40, 64, bidirectional=True), tg.randn(6, 70, 40, requires_grad=True)
    before, found = tg.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            tg.set_num_threads(threads)
            out = layer(x)[0]
            found.append([out, *tg.autograd.grad(out.square().sum(), [x, *layer.parameters()])])
    finally:
        tg.set_num_threads(before)
    assert all(tg.equal(a, b) for other in found[1:] for a, b in zip(found[0], other))


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_another_number_of_layers_are_refused_but_for_more_of_an_lstm(kind):
    op, layer, x = (
        {"LSTM": tg.lstm, "GRU": tg.gru, "RNN": tg.rnn_tanh}[kind],
        getattr(nn, kind)(3, 4),
        tg.randn(5, 2, 3),
    )

    def run(count):
        h = tg.ones(count, 2, 4)
        hx = [h, h] if kind == "LSTM" else h
        return op(x, hx, [*layer.parameters()], True, 1, 0.0, False, False, False)[0]

    with pytest.raises(IndexError if kind == "LSTM" else RuntimeError, match="hx has 0 states of layers"):
        run(0)
    if kind == "LSTM":
        assert tg.equal(run(2), run(1))
    else:
        with pytest.raises(RuntimeError, match="hx has 2 states of layers, but expected 1"):
            run(2)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_wider_than_a_part_of_the_sum_equal_their_cells(kind):
    layer, cell = getattr(nn, kind)(3, 300), getattr(nn, kind + "Cell")(3, 300)
    cell.load_state_dict({name.removesuffix("_l0"): w for name, w in layer.state_dict().items()})
    x = tg.randn(3, 2, 3, requires_grad=True)
    state, rows = None, []
    for row in x:
        state = cell(row, state)
        rows.append(state[0] if kind == "LSTM" else state)
    out = layer(x)[0]
    assert tg.allclose(out, tg.stack(rows), atol=1e-6)
    found, wanted = (tg.autograd.grad(o.square().sum(), x)[0] for o in (out, tg.stack(rows)))
    assert tg.allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both", [False, True])
def test_packed_layers_have_derivatives_of_derivatives(kind, both):
    layer = getattr(nn, kind)(2, 2, bidirectional=both, dtype=tg.float64)
    sizes = tg.tensor([3, 2, 2])

    def run(x, *weights):
        with_weights = dict(zip(dict(layer.named_parameters()), weights))
        packed = rnn.PackedSequence(x, sizes)
        out, last = tg.func.functional_call(layer, with_weights, (packed,))
        return out.data, *flat(last)

    weights = [w.detach().requires_grad_() for w in layer.parameters()]
    x = tg.randn(7, 2, dtype=tg.float64, requires_grad=True)
    assert tg.autograd.gradcheck(run, (x, *weights), fast_mode=True)
    assert tg.autograd.gradgradcheck(run, (x, *weights), fast_mode=True)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_each_sample_and_of_a_batch_of_models(kind):
    layer = getattr(nn, kind)(2, 3)
    weights, x = dict(layer.named_parameters()), tg.randn(4, 5, 1, 2)

    def loss(weights, x):
        return tg.func.functional_call(layer, weights, (x,))[0].square().sum()

    each = tg.vmap(tg.func.grad(loss), (None, 0))(weights, x)
    for k in range(4):
        alone = tg.autograd.grad(loss(weights, x[k]), list(weights.values()))
        for name, grad in zip(weights, alone):
            assert tg.allclose(each[name][k], grad, atol=1e-6)
    models = {name: tg.stack([w, 2 * w]).detach() for name, w in weights.items()}
    found = tg.vmap(loss, (0, None))(models, x[0])
    for k in range(2):
        assert tg.allclose(found[k], loss({name: w[k] for name, w in models.items()}, x[0]))
    assert tg.vmap(lambda row: layer(row)[0])(x[:0]).shape == (0, 5, 1, 3)


WRONG = [
    (lambda: nn.LSTM(3, 4)(tg.ones(2, 2, 5)), RuntimeError, r"must be equal to input_size. Expected 3, got 5"),
    (lambda: nn.LSTM(3, 4)(tg.ones(2)), ValueError, "LSTM: Expected input to be 2D or 3D, got 1D"),
    (lambda: nn.GRU(3, 4)(tg.ones(2, 2, 3), tg.ones(1, 3, 4)), RuntimeError, r"Expected hidden size \(1, 2, 4\)"),
    (lambda: nn.GRU(3, 4)(tg.ones(2, 2, 3), tg.ones(2, 4)), RuntimeError, "For batched 3-D input, hx should also be"),
    (
        lambda: nn.LSTM(3, 4)(tg.ones(2, 2, 3), (tg.ones(1, 2, 4), tg.ones(1, 2, 5))),
        RuntimeError,
        r"Expected hidden\[1\] size",
    ),
    (lambda: nn.LSTM(3, 4)(tg.ones(0, 2, 3)), RuntimeError, "Expected sequence length to be larger than 0"),
    (lambda: nn.LSTM(3, 4, dropout=2), ValueError, r"dropout should be a number in range \[0, 1\]"),
    (lambda: nn.LSTM(3, 0), ValueError, "hidden_size must be greater than zero"),
    (lambda: nn.LSTM(3, 4.0), TypeError, "hidden_size should be of type int"),
    (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "proj_size has to be smaller"),
    (lambda: nn.RNN(3, 4, nonlinearity="sin"), ValueError, "Unknown nonlinearity 'sin'"),
    (lambda: nn.RNNBase("SSM", 3, 4), ValueError, "Unrecognized RNN mode"),
    (lambda: nn.GRUCell(3, 4)(tg.ones(1, 2, 3)), ValueError, "GRUCell: Expected input to be 1D or 2D, got 3D"),
    (lambda: rnn.pack_padded_sequence(tg.ones(3, 2), [2, 3]), RuntimeError, "sorted in decreasing order"),
    (lambda: rnn.pack_padded_sequence(tg.ones(3, 2), [2, 0]), RuntimeError, "has to be greater than 0"),
    (lambda: rnn.pack_padded_sequence(tg.ones(3, 2), [4, 1]), RuntimeError, "the longest sequence has 4 steps"),
    (lambda: rnn.pack_padded_sequence(tg.ones(3, 2), [3]), RuntimeError, r"batch_size=2"),
    (lambda: rnn.pad_sequence([]), RuntimeError, "empty list"),
    (lambda: rnn.pad_sequence([tg.ones(1)], padding_side="top"), RuntimeError, "either 'left' or 'right'"),
    (lambda: rnn.pad_packed_sequence(rnn.pack_sequence([tg.ones(2)]), total_length=1), ValueError, "total_length=1"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG, ids=range(len(WRONG)))
def test_what_does_not_fit_is_refused(call, kind, text):
    with warnings.catch_warnings(), pytest.raises(kind, match=text):
        warnings.simplefilter("ignore")
        call()


def test_dropout_of_one_layer_is_warned_of():
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last recurrent layer"):
        nn.GRU(2, 3, dropout=0.5)


def test_the_list_of_weights_can_be_given():
    layer, x = nn.GRU(2, 3), tg.ones(4, 1, 2)
    layer._flat_weights = [tg.zeros_like(weight) for weight in layer._flat_weights]
    assert layer(x)[0].count_nonzero() == 0
    assert layer.weight_hh_l0.count_nonzero() == 0


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_layer_that_orders_its_state_itself_does_so_for_packed_sequences(kind):
    base, seen = getattr(nn, kind), []

    class Own(base):
        def permute_hidden(self, hx, permutation):
            seen.append(permutation)
            return super().permute_hidden(hx, permutation)

    tg.manual_seed(0)
    layer, plain = Own(3, 4), base(3, 4)
    plain.load_state_dict(layer.state_dict())
    packed = nn.utils.rnn.pack_padded_sequence(tg.randn(5, 2, 3), [3, 5], enforce_sorted=False)
    first = tg.randn(1, 2, 4)
    state = (first, first * 2) if kind == "LSTM" else first
    (output, last), (expected, wanted) = layer(packed, state), plain(packed, state)
    assert len(seen) == 2
    for a, b in zip((output.data, *tg.atleast_1d(last)), (expected.data, *tg.atleast_1d(wanted)), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU])
def test_projections_are_of_lstms_alone(kind):
    with pytest.raises(ValueError, match="proj_size argument is only supported for LSTM, not RNN or GRU"):
        kind(3, 2, proj_size=1)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        kind(3, 2, proj=1)
