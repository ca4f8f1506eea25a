"""The three maps of a convolution; sizes and dtypes are checked by the caller."""
from tinygrad_ext.core.tensor cimport Tensor
from tinygrad_ext.core.types cimport int64_t
from tinygrad_ext.native.conv_geometry cimport Geometry

cdef Tensor conv_forward(Tensor x, Tensor w, Tensor bias, Geometry *g)
cdef Tensor conv_input_grad(Tensor grad, Tensor w, Geometry *g)
cdef Tensor conv_weight_grad(Tensor grad, Tensor x, const int64_t *sizes, int rank, Geometry *g)
