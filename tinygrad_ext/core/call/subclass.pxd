from tinygrad_ext.core.data.tensor cimport Tensor

cdef Tensor bare(cls)                           # an instance of Tensor or a subclass, without a call of its __new__
cdef Tensor as_class(Tensor t, cls)             # t as an instance of cls, in t's place of the graph
cdef Tensor reclass(Tensor t, cls)              # the same; t may be in use elsewhere
cdef bint any_dispatching() noexcept             # whether there was ever an instance of a class with `__torch_dispatch__`
