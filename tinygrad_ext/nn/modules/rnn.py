"""Recurrent layers; their single steps, from `rnn_cells`, are found here too."""

import math
import numbers
import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.call.scripting import is_scripting

from .. import init
from ..module import Module
from ..parameter import Parameter
from ..registry import settled
from ..utils.rnn import PackedSequence
from .rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_USUAL = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _permuted(state, order):
    return state if order is None else state.index_select(1, order)


def apply_permutation(tensor, permutation, dim=1):
    """Deprecated: ``tensor.index_select(dim, permutation)``."""
    warnings.warn(
        "apply_permutation() is deprecated: write tensor.index_select(dim, permutation)", FutureWarning, stacklevel=2
    )
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What recurrent layers share.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size, hidden_size: features of the input and of the state.
        num_layers: each takes what the one before gives.
        bias: whether there are two learned offsets.
        batch_first: inputs and outputs are (batch, steps, features) instead of (steps, batch, features).
        dropout: probability with which elements between layers are zeroed while training.
        bidirectional: also go from the last step to the first; outputs are beside each other.
        proj_size: of an LSTM, features to which the output is projected; 0 for none.

    Parameters are weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0, weight_ih_l0_reverse and so on, all
    uniform in ±1/sqrt(hidden_size).
    """

    def __init__(
        self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
        bidirectional=False, proj_size=0, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        for name, value in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(value, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
        for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if not isinstance(value, int):
                raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero, got {value}")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weights_names, self._all_weights = [], []
        for layer in range(num_layers):
            for direction in range(1 + bidirectional):
                self._make_layer(layer, direction, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def _make_layer(self, layer, direction, where):
        rows, given = _GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        features = self.input_size if layer == 0 else given * (1 + self.bidirectional)
        shapes = {"weight_ih": (rows, features), "weight_hh": (rows, given)}
        if self.bias:
            shapes.update(bias_ih=(rows,), bias_hh=(rows,))
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = [f"{name}_l{layer}{'_reverse' if direction else ''}" for name in shapes]
        for name, shape in zip(names, shapes.values()):
            setattr(self, name, Parameter(tg.empty(shape, **where)))
        self._flat_weights_names += names
        self._all_weights.append(names)

    def reset_parameters(self):
        """Draw all weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self):
        """Nothing: weights are read where they are."""

    @settled
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights):
        # libraries that run a layer with other tensors write both the parameters and this list
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            self._parameters[name] = weight

    @settled
    def all_weights(self):
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    # ---- what comes in

    def check_input(self, input, batch_sizes=None):
        """Raise RuntimeError for another number of dimensions or features, ValueError for another dtype."""
        kind = self.weight_ih_l0.dtype
        if input.dtype != kind and not is_scripting() and not tg.is_autocast_enabled("cpu"):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind}). "
                f"Convert input: input.to({kind}), or convert model: model.to({input.dtype})"
            )
        wanted = 3 if batch_sizes is None else 2
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def get_expected_hidden_size(self, input, batch_sizes=None):
        """(layers times directions, batch, features) of the state that goes with an input."""
        batch = input.shape[0 if self.batch_first else 1] if batch_sizes is None else batch_sizes[0].item()
        return self.num_layers * (1 + self.bidirectional), batch, self.proj_size or self.hidden_size

    get_expected_cell_size = get_expected_hidden_size

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raise RuntimeError where a state has another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.shape)))

    def check_forward_args(self, input, hidden, batch_sizes=None):
        """Raise RuntimeError where input or state have another shape."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state with its batch in another order."""
        return _permuted(hx, permutation)

    def _zeros(self, x, batch):
        count = self.num_layers * (1 + self.bidirectional)
        return tg.zeros((count, batch, self.proj_size or self.hidden_size), dtype=x.dtype, device=x.device)

    def _run(self, x, state):
        """(output, states) of a batch."""
        settings = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        return self._op(x, state, *settings, self.batch_first)

    def forward(self, input, hx: tg.Tensor | None = None):
        """(output, last state); of an LSTM the state is a pair. A PackedSequence gives one."""
        return self._forward(input, hx)

    def _forward(self, input, hx):
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        at = 0 if self.batch_first else 1
        x = input if batched else input.unsqueeze(at)
        state = self._state(x, hx, x.shape[at], batched)
        if hx is None:  # zeros are of the shape that goes with the input
            self.check_input(x)
        else:
            self.check_forward_args(x, state if self.mode == "LSTM" else state[0])
        output, *last = self._run(x, state)
        if not batched:
            return output.squeeze(at), self._given_back([s.squeeze(1) for s in last])
        return output, self._given_back(list(last))

    def _packed(self, input, hx):
        data, batch_sizes, order, back = input
        batch = batch_sizes[0].item()
        state = self._state(data, hx, batch, True)
        if hx is not None:
            state = self._in_order(state, order)
        if is_scripting() or isinstance(batch, int):
            self.check_forward_args(data, state if self.mode == "LSTM" else state[0], batch_sizes)
        else:  # while a program is traced it is a number of the graph, and the op looks at the state
            self.check_input(data, batch_sizes)
        settings = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        output, *last = self._packed_op(data, batch_sizes, state, *settings)
        last = self._given_back(self._in_order(list(last), back))
        return PackedSequence(output, batch_sizes, order, back), last

    def _in_order(self, state, order):
        """The tensors of a state with their batches in another order, as `permute_hidden` puts them."""
        return [self.permute_hidden(state[0], order)]

    def _state(self, x, hx, batch, batched):
        """The first state as a list of tensors (layers times directions, batch, features)."""
        if hx is None:
            return [self._zeros(x, batch)]
        self._check_dimensions([hx], 3 if batched else 2)
        return [hx if batched else hx.unsqueeze(1)]

    def _check_dimensions(self, state, wanted):
        if any(s.dim() != wanted for s in state):
            kind, names = ("batched 3-D" if wanted == 3 else "unbatched 2-D"), "hx and cx" if len(state) > 1 else "hx"
            found = ", ".join(f"{s.dim()}-D" for s in state)
            raise RuntimeError(
                f"For {kind} input, {names} should also be {wanted}-D but got "
                + (f"({found}) tensors" if len(state) > 1 else f"{found} tensor")
            )

    def _given_back(self, last):
        return last[0]

    def extra_repr(self):
        told = [f"{name}={getattr(self, name)}" for name, usual in _USUAL.items() if getattr(self, name) != usual]
        return ", ".join([f"{self.input_size}", f"{self.hidden_size}", *told])


def _refuse_projection(name, size):
    if size is not None:
        raise ValueError(f"proj_size argument is only supported for LSTM, not RNN or GRU: {name} got {size}")


class RNN(RNNBase):
    """Layers of ``h' = act(W_ih x + b_ih + W_hh h + b_hh)``; nonlinearity: "tanh" or "relu"."""

    def __init__(
        self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
        bidirectional=False, device=None, dtype=None, *, proj_size=None,
    ):  # fmt: skip
        _refuse_projection("RNN", proj_size)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, device, dtype,
        )  # fmt: skip

    def _op(self, x, state, *settings):
        if self.nonlinearity == "relu":
            return tg.rnn_relu(x, state[0], self._flat_weights, *settings)
        return tg.rnn_tanh(x, state[0], self._flat_weights, *settings)

    def _packed_op(self, data, batch_sizes, state, *settings):
        if self.nonlinearity == "relu":
            return tg.rnn_relu(data, batch_sizes, state[0], self._flat_weights, *settings)
        return tg.rnn_tanh(data, batch_sizes, state[0], self._flat_weights, *settings)


class GRU(RNNBase):
    """Layers of gated recurrent units (Cho, 2014): reset, update and new gate, in this order in the weights."""

    def __init__(
        self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
        device=None, dtype=None, *, proj_size=None,
    ):  # fmt: skip
        _refuse_projection("GRU", proj_size)
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )

    def _op(self, x, state, *settings):
        return tg.gru(x, state[0], self._flat_weights, *settings)

    def _packed_op(self, data, batch_sizes, state, *settings):
        return tg.gru(data, batch_sizes, state[0], self._flat_weights, *settings)


class LSTM(RNNBase):
    """Layers of long short-term memory: input, forget, cell and output gate, in this order in the weights.

    The state is a pair of output and cell, (layers times directions, batch, features) each.
    """

    def __init__(
        self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
        proj_size=0, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device,
            dtype,
        )  # fmt: skip

    def get_expected_cell_size(self, input, batch_sizes=None):
        """(layers times directions, batch, features) of the cell."""
        return *self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size

    def check_forward_args(self, input, hidden, batch_sizes=None):
        """Raise RuntimeError where input, output or cell have another shape."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], expected, "Expected hidden[0] size {}, got {}")
        expected = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], expected, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        """The state, or one of its tensors, with its batch in another order."""
        if isinstance(hx, tuple):
            return super().permute_hidden(hx[0], permutation), super().permute_hidden(hx[1], permutation)
        return super().permute_hidden(hx, permutation)

    def _in_order(self, state, order):
        hidden, cell = self.permute_hidden((state[0], state[1]), order)
        return [hidden, cell]

    def _state(self, x, hx, batch, batched):
        if hx is None:
            hidden = self._zeros(x, batch)
            if self.proj_size == 0:
                return [hidden, hidden]
            count = self.num_layers * (1 + self.bidirectional)
            return [hidden, tg.zeros((count, batch, self.hidden_size), dtype=x.dtype, device=x.device)]
        self._check_dimensions(list(hx), 3 if batched else 2)
        return [s if batched else s.unsqueeze(1) for s in hx]

    def _op(self, x, state, *settings):
        return tg.lstm(x, state, self._flat_weights, *settings)

    def _packed_op(self, data, batch_sizes, state, *settings):
        return tg.lstm(data, batch_sizes, state, self._flat_weights, *settings)

    def forward(self, input, hx: tuple[tg.Tensor, tg.Tensor] | None = None):
        """(output, (last output, last cell)). A PackedSequence gives one."""
        return self._forward(input, hx)

    def _given_back(self, last):
        return tuple(last)
