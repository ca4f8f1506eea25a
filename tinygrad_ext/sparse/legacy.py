"""torch.sparse.FloatTensor and its like: constructors of old, and types that say the dtype of a sparse tensor."""

import tinygrad_ext as tg

from .coo import SparseTensor, sparse_coo_tensor


class _Legacy(type):
    """A type that no tensor has, and that knows its own all the same."""

    def __call__(cls, *args):
        if len(args) in (2, 3):
            return sparse_coo_tensor(*args, dtype=cls.dtype)
        return sparse_coo_tensor(args[0] if len(args) == 1 and isinstance(args[0], tuple) else args, dtype=cls.dtype)

    def __instancecheck__(cls, instance):
        return isinstance(instance, SparseTensor) and instance.dtype is cls.dtype


def _made(name, dtype):
    return _Legacy(name, (), {"dtype": dtype, "__doc__": f"Sparse tensors of {dtype}.", "__module__": "torch.sparse"})


ByteTensor = _made("ByteTensor", tg.uint8)
CharTensor = _made("CharTensor", tg.int8)
ShortTensor = _made("ShortTensor", tg.int16)
IntTensor = _made("IntTensor", tg.int32)
LongTensor = _made("LongTensor", tg.int64)
HalfTensor = _made("HalfTensor", tg.float16)
FloatTensor = _made("FloatTensor", tg.float32)
DoubleTensor = _made("DoubleTensor", tg.float64)
