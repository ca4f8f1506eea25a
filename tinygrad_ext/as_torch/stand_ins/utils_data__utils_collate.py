"""torch.utils.data._utils.collate: how samples become a batch."""

import re

import tinygrad_ext as _tg
from tinygrad_ext.utils.data.collate import collate, default_collate, default_collate_fn_map, default_convert

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # letters of NumPy's dtypes that no tensor is made of
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Stack tensors, also those of a class that has a function of its own in a table."""
    return _tg.stack(list(batch), 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Arrays of NumPy as one tensor."""
    if np_str_obj_array_pattern.search(batch[0].dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate(
        [_tg.as_tensor(item) for item in batch], collate_fn_map=collate_fn_map or {_tg.Tensor: collate_tensor_fn}
    )


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """Numbers of NumPy as one tensor."""
    return _tg.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    """Floats as one tensor of float64."""
    return _tg.tensor(batch, dtype=_tg.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Ints as one tensor."""
    return _tg.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Texts as they are."""
    return batch
