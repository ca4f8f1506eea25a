"""Methods of tensors of other layouts, of quantized ones and of those on an accelerator: what a plain one answers.

Libraries name them at import, in tables of functions, or call them to see whether they are refused.
"""

import itertools

from tinygrad_ext.core.call.interop import storage_of
from tinygrad_ext.core.data.dtype import memory_format
from tinygrad_ext.core.data.tensor import Tensor

_COMPRESSED = {
    "crow_indices": "sparse row compressed",
    "col_indices": "sparse row compressed",
    "ccol_indices": "sparse column compressed",
    "row_indices": "sparse column compressed",
}
_LAYOUTS = {
    **dict.fromkeys(("coalesce", "is_coalesced", "indices"), "sparse coordinate"),
    "values": "sparse",
    **_COMPRESSED,
}
_QUANTIZED = ("int_repr", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "q_scale")


def _of_layout(name, layout):
    """A method of tensors of a sparse layout alone; those have their own."""
    made = {"sparse row compressed": "to_sparse_csr()", "sparse column compressed": "to_sparse_csc()"}.get(
        layout, "to_sparse()"
    )

    def refuse(self):
        raise RuntimeError(f"{name} expected {layout} tensor layout but got Strided: {made} makes one of this tensor")

    return _named(refuse, name)


def _absent(name, why):
    """A method of which nothing is here."""

    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"{name}(): {why}")

    return _named(refuse, name)


def _named(function, name):
    function.__name__ = name
    function.__qualname__ = f"Tensor.{name}"
    return function


def _pin_memory(self, device=None):
    """Refused: memory is pinned for an accelerator, and there is none."""
    raise RuntimeError("pin_memory(): Cannot access accelerator device when none is available. Leave it out.")


def _is_set_to(self, tensor):
    """Whether two tensors are the same memory, seen in the same way."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"is_set_to(): argument 'tensor' (position 1) must be Tensor, not {type(tensor).__name__}")
    return (
        storage_of(self) is storage_of(tensor)
        and self.storage_offset() == tensor.storage_offset()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


def _dim_order(self, ambiguity_check=False):
    """The dimensions from that of the largest steps in memory to that of the smallest.

    Of equal steps the longer dimension comes first; one of step 0 stays behind those before it.

    Args:
        ambiguity_check: True raises RuntimeError where dimensions of one element or of equal steps could change
            places; a list of memory formats where, besides, not exactly one of them is that of the tensor.
    """
    formats = [] if isinstance(ambiguity_check, bool) else ambiguity_check
    if not isinstance(formats, list) or not all(isinstance(f, memory_format) for f in formats):
        raise TypeError(
            "The ambiguity_check argument must be a bool or a list of memory formats; dim_order() got "
            f"{ambiguity_check!r}"
        )
    free = 1 in self.shape or any(a == b for a, b in itertools.pairwise(self.stride()))
    if ambiguity_check is not False and free and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats: "
            f"its sizes are {tuple(self.shape)}, its steps {self.stride()}. Leave ambiguity_check out"
        )
    steps, order = list(zip(self.stride(), self.shape, strict=True)), []
    for dim in range(self.dim()):
        at = len(order)
        while at and steps[order[at - 1]][0] and steps[order[at - 1]] < steps[dim]:
            at -= 1
        order.insert(at, dim)
    return tuple(order)


def _dequantize(self):
    """The numbers as float32; a tensor of float32 itself."""
    return self.float()


def _sparse_mask(self, mask):
    """Refused: a mask of the layout sparse_coo answers itself."""
    told = mask.layout if isinstance(mask, Tensor) else type(mask).__name__
    raise TypeError(f"sparse_mask(): expected a mask of the layout torch.sparse_coo, got {told}; to_sparse() makes one")


METHODS = {
    "sparse_mask": _named(_sparse_mask, "sparse_mask"),
    **{name: _of_layout(name, layout) for name, layout in _LAYOUTS.items()},
    **{
        name: _absent(name, "of sparse tensors alone; to_sparse() makes one")
        for name in ("_nnz", "_indices", "_values")
    },
    **{
        name: _absent(name, "tensors are not quantized here; write the scale and the rounding out")
        for name in (*_QUANTIZED, "q_zero_point", "qscheme")
    },
    **{
        name: _absent(name, "there is no such layout here; to_sparse_csr() and to_sparse_csc() keep single elements")
        for name in ("to_sparse_bsr", "to_sparse_bsc", "to_mkldnn")
    },
    "record_stream": _absent("record_stream", "there are no streams of work here; leave it out"),
    "pin_memory": _named(_pin_memory, "pin_memory"),
    "is_set_to": _named(_is_set_to, "is_set_to"),
    "dim_order": _named(_dim_order, "dim_order"),
    "dequantize": _named(_dequantize, "dequantize"),
    "is_distributed": lambda self: False,
    "const_data_ptr": Tensor.data_ptr,
    "_is_zerotensor": lambda self: False,
}
