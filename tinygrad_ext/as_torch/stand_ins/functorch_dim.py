"""functorch.dim: tensors whose dimensions have names of their own, which are not here."""

from . import absent

_WHY = "dimensions have no names here; use vmap, einsum or einops"
globals().update(absent.types("functorch.dim", "Dim DimList Tensor", _WHY))
globals().update(absent.functions("functorch.dim", "dims cat stack split dimlists", _WHY))
