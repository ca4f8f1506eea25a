"""Single steps of recurrent layers."""

import math

import tinygrad_ext as tg

from .. import init
from ..module import Module
from ..parameter import Parameter

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """What single steps share: weight_ih, weight_hh, bias_ih and bias_hh, uniform in ±1/sqrt(hidden_size)."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        for name, shape in (("weight_ih", (rows, input_size)), ("weight_hh", (rows, hidden_size))):
            setattr(self, name, Parameter(tg.empty(shape, device=device, dtype=dtype)))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(tg.empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw all weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        more = "" if self.bias is True else f", bias={self.bias}"
        activation = getattr(self, "nonlinearity", "tanh")
        return f"{self.input_size}, {self.hidden_size}{more}" + (
            "" if activation == "tanh" else f", nonlinearity={activation}"
        )

    def _batch(self, input):
        """The input (batch, input_size); one example is a batch of one."""
        if input.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}: "
                f"{type(self).__name__} takes (batch, {self.input_size})"
            )
        return input if input.dim() == 2 else input.unsqueeze(0)

    def _state(self, input, state, name, number=0):
        """A state (batch, hidden_size) that goes with an input."""
        if state.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {name} to be 1D or 2D, got {state.dim()}D instead")
        if state.shape[-1] != self.hidden_size:
            raise RuntimeError(
                f"hidden{number} has inconsistent hidden_size: got {state.shape[-1]}, expected {self.hidden_size}: "
                f"{type(self).__name__} takes (batch, {self.hidden_size})"
            )
        if input.dim() == 2 and state.dim() == 2 and input.shape[0] != state.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{number} batch size {state.shape[0]}"
            )
        return state if input.dim() == 2 else state.unsqueeze(0)

    def _zeros(self, x):
        return tg.zeros(x.shape[0], self.hidden_size, dtype=x.dtype, device=x.device)


class RNNCell(RNNCellBase):
    """One step ``act(W_ih x + b_ih + W_hh h + b_hh)``; nonlinearity: "tanh" or "relu"."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx: tg.Tensor | None = None):
        """The next state (batch, hidden_size) of input (batch, input_size) and a state, zeros where it is None."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}: it may be tanh or relu")
        x = self._batch(input)
        state = self._zeros(x) if hx is None else self._state(input, hx, "hidden")
        if self.nonlinearity == "tanh":
            state = tg.rnn_tanh_cell(x, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        else:
            state = tg.rnn_relu_cell(x, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return state if input.dim() == 2 else state.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of long short-term memory."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx: tuple[tg.Tensor, tg.Tensor] | None = None):
        """(output, cell), each (batch, hidden_size), of input (batch, input_size) and a pair, zeros where None."""
        x = self._batch(input)
        if hx is None:
            state = [self._zeros(x), self._zeros(x)]
        else:
            state = [self._state(input, hx[0], "hx[0]"), self._state(input, hx[1], "hx[1]", 1)]
        hidden, cell = tg.lstm_cell(x, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if input.dim() == 2:
            return hidden, cell
        return hidden.squeeze(0), cell.squeeze(0)


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx: tg.Tensor | None = None):
        """The next state (batch, hidden_size) of input (batch, input_size) and a state, zeros where it is None."""
        x = self._batch(input)
        state = self._zeros(x) if hx is None else self._state(input, hx, "hidden")
        state = tg.gru_cell(x, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return state if input.dim() == 2 else state.squeeze(0)
