"""torch.types: names for annotations."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, Union

import tinygrad_ext as _tg

__all__ = ["Device", "FileLike", "Number", "Storage"]
Number = Union[builtins.int, builtins.float, builtins.bool]  # noqa: UP007 - libraries ask for its __args__
Device = Union[_tg.device, str, builtins.int, None]  # noqa: UP007
FileLike = Union[str, os.PathLike, IO[bytes]]  # noqa: UP007
Storage = Any
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_dtype, _device, _layout, _memory_format = _tg.dtype, _tg.device, _tg.layout, _tg.memory_format
_size = Union[_tg.Size, list, tuple]  # noqa: UP007
_symsize = _size
_TensorOrTensors = Union[_tg.Tensor, Sequence]  # noqa: UP007
_TensorOrTensorsOrGradEdge = _TensorOrTensors
_dispatchkey = str
SymInt, SymFloat, SymBool = builtins.int, builtins.float, builtins.bool
IntLikeType = PySymType = builtins.int
FloatLikeType, BoolLikeType = builtins.float, builtins.bool
_Number = (builtins.int, builtins.float, builtins.bool)
