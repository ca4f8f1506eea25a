"""torch.sparse: there are no sparse tensors here."""

from . import absent

_WHY = "there are no sparse tensors here; use dense ones, or the package in plugins/sparse"
globals().update(absent.functions("sparse", "addmm mm sum softmax log_softmax solve spdiags sampled_addmm", _WHY))
globals().update(absent.types("sparse", "FloatTensor DoubleTensor LongTensor IntTensor HalfTensor ByteTensor", _WHY))
