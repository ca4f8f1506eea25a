"""Sequences of several lengths in one tensor: padded, or packed, the steps of all of them one after the other."""

from typing import NamedTuple

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.scripting import is_scripting

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: tg.Tensor
    batch_sizes: tg.Tensor
    sorted_indices: tg.Tensor | None
    unsorted_indices: tg.Tensor | None


class PackedSequence(_Packed):
    """Sequences without padding.

    Attributes: data (the sum of all lengths, ...), step by step, the longest sequence first; batch_sizes, how many
    sequences go on at each step, int64 on the CPU; sorted_indices, where each stood in the batch, and unsorted_indices,
    the way back; both None where they were sorted already.
    """

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:  # a pair, as PyTorch takes it too
            if not isinstance(data, list | tuple) or len(data) != 2:
                raise AssertionError(
                    f"PackedSequence: expected data to be a list or tuple of length 2 where batch_sizes is not given, "
                    f"but got {type(data).__name__}; use pack_sequence() or pack_padded_sequence()"
                )
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                f"batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually: "
                f"they are on {batch_sizes.device}; use pack_sequence() or pack_padded_sequence()"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """The same with data, and indices where a device is given, moved or converted as `Tensor.to` does."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *moved)

    def pin_memory(self):
        """Itself: all memory is the CPU's."""
        return self

    cpu = pin_memory

    def cuda(self, *args, **kwargs):
        """Raises RuntimeError: there is no such device."""
        return self.to(tg.device("cuda"))

    is_cuda = property(lambda self: self.data.is_cuda)

    def is_pinned(self):
        """False."""
        return False


for _name in ("double", "float", "half", "long", "int", "short", "char", "byte"):

    def _converted(self, _name=_name):
        return self.to(getattr(self.data, _name)().dtype)

    _converted.__name__, _converted.__doc__ = _name, "The same with data of another dtype."
    setattr(PackedSequence, _name, _converted)


@boundary
def invert_permutation(permutation):
    """The permutation that undoes one (n,), or None for None."""
    if permutation is None:
        return None
    return tg.empty_like(permutation).scatter_(0, permutation, tg.arange(permutation.numel()))


@boundary
def pack_padded_sequence(input, lengths, batch_first: bool = False, enforce_sorted: bool = True):
    """Pack padded sequences.

    Args:
        input: (steps, batch, ...), with batch_first (batch, steps, ...). lengths: of each sequence, a list or a tensor
            on the CPU. enforce_sorted: they are sorted by falling length, which a graph or an export may want;
            otherwise they are sorted here.

    Raises RuntimeError for lengths that are not positive, that do not fall, or that do not fit the input.

        >>> import tinygrad_ext as tg
        >>> from tinygrad_ext.nn.utils.rnn import pack_padded_sequence
        >>> pack_padded_sequence(tg.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True).data.tolist()
        [1, 3, 2]
    """
    if isinstance(lengths, tg.Tensor):
        lengths = lengths.to(tg.int64)
    else:
        lengths = tg.tensor([int(n) for n in lengths], dtype=tg.int64)
    order: tg.Tensor | None = None
    if not enforce_sorted and lengths.dim() == 1:
        batch_dim = 0 if batch_first else 1
        if input.dim() > 1 and lengths.shape[0] != input.shape[batch_dim]:
            raise RuntimeError(
                f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.shape[0]} "
                f"(batch_size={input.shape[batch_dim]})"
            )
        lengths, order = lengths.sort(descending=True, stable=True)
        input = input.index_select(batch_dim, order)
    data, batch_sizes = tg._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, invert_permutation(order))


@boundary
def pad_packed_sequence(
    sequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
):
    """(padded sequences, their lengths) of packed ones.

    Args:
        batch_first: give (batch, steps, ...) instead of (steps, batch, ...). padding_value: what fills up.
        total_length: pad to so many steps, at least the longest.
    """
    steps = sequence.batch_sizes.shape[0]
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    padded, lengths = tg._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, steps)
    order = sequence.unsorted_indices
    if order is not None:
        return padded.index_select(0 if batch_first else 1, order), lengths[order]
    return padded, lengths


@boundary
def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Stack sequences (length, ...), filling up the shorter ones at a side: (steps, batch, ...) or batch first.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext.nn.utils.rnn import pad_sequence
    >>> pad_sequence([tg.ones(2), tg.ones(1)], batch_first=True).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"padding_side must be either 'left' or 'right', but got '{padding_side}'")
    if isinstance(sequences, tg.Tensor):
        sequences = sequences.unbind(0)
    elif not is_scripting() and not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: " + str(type(sequences))
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence(): received an empty list of sequences, so nobody knows their dtype")
    most = max(s.shape[0] for s in sequences)
    filled = []
    for s in sequences:
        rest = s.new_full([most - s.shape[0]] + list(s.shape[1:]), padding_value)
        filled.append(tg.cat([s, rest] if padding_side == "right" else [rest, s]))
    return tg.stack(filled, 0 if batch_first else 1)


@boundary
def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded tensor, as a list, each as long as `lengths` says."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n] for row, n in zip(rows.unbind(0), lengths.tolist() if hasattr(lengths, "tolist") else lengths)]


@boundary
def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of sequences (length, ...)."""
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


@boundary
def unpack_sequence(packed_sequences):
    """The list of sequences of a PackedSequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
