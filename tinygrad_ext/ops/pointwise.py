"""Elementwise arithmetic."""

from tinygrad_ext.ops.record import op

op("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
   scalar={"int float half complex": "x + alpha * y", "bool": "x | (alpha & y)"},
   grad={"self": "grad", "other": lambda grad, alpha: grad if alpha == 1 else grad * alpha},
   operator="add", numbers="other", reference="numpy.add",
   doc="self + alpha * other, element by element, with broadcasting.")

op("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
   scalar={"int float half complex": "x * y", "bool": "x & y"},
   grad={"self": lambda grad, other: grad * other,
         "other": lambda grad, self: grad * self},
   operator="mul", numbers="other", aliases="multiply", reference="numpy.multiply",
   doc="Product, element by element, with broadcasting.")

op("aten::exp(Tensor self) -> Tensor",
   scalar="exp(x)", promote="float",
   grad={"self": lambda grad, result: grad * result},
   reference="numpy.exp", domain=(-10, 10),
   doc="Exponential of each element.")

op("aten::relu(Tensor self) -> Tensor",
   scalar={"int": "x > 0 ? x : 0", "float": "(x > 0) | (x != x) ? x : 0"},
   grad={"self": lambda grad, result: grad * (result > 0)},
   doc="The larger of zero and each element.")

op("aten::gt.Tensor(Tensor self, Tensor other) -> Tensor",
   scalar={"bool int float": "x > y"}, returns="bool",
   operator="gt", numbers="other", reference="numpy.greater",
   doc="self > other, element by element.")
