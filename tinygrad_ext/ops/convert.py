"""Conversions: to() and its short forms, values out of tensors, complex numbers and their parts."""

import tinygrad_ext as tg
from tinygrad_ext.core.data.table import NAMED
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, unary

TITLES = {row.name: row.title for row in NAMED}
_ALL = "bool int float half complex"
_REAL = "bool int float half"


def _likes(make):
    yield Sample(make(2, 3))
    yield Sample(make(0, 2))
    yield Sample(make())
    yield Sample(make(4, 3).t())


def _plain(make):
    """Without gradients: rounded to a narrower dtype, differences of float64 inputs say nothing."""
    for sample in _likes(make):
        yield Sample(sample.args[0].detach())


def _with(*more, **named):
    return lambda make: [Sample(*s.args, *more, **named) for s in _likes(make)]


def _like_other(make):
    yield Sample(make(2, 3), make.of([1.5], dtype=make.dtype))
    yield Sample(make(), make.bools(2))


def _pairs(make):
    yield Sample(make(3, 2))
    yield Sample(make(2))


def _twos(make):
    yield Sample(make(2, 3), make(2, 3))
    yield Sample(make(3), make(2, 1))
    yield Sample(make(), make())


def _no_data(*args):
    raise RuntimeError("Tensor.item() cannot be called on meta tensors: they have no data")


def _no_list(*args):
    raise NotImplementedError("Cannot copy out of meta tensor; no data! tolist() needs a tensor on the cpu")


# ---- to ------------------------------------------------------------------------------------------------------------

op(
    "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    batch="leading",
    kernel="_to_copy",
    shape="kernel",
    tags="any_device",
    variants="function",
    types=_ALL,
    samples=_likes,
    grad={"self": lambda grad, self_dtype, self_device: grad.to(self_device, self_dtype)},
    jvp="linear",
    doc="Copy in another dtype or memory order, or on another device.",
)

op(
    "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    compose="to_dtype",
    variants="method",
    types=_ALL,
    samples=lambda make: _with(make.dtype, copy=True)(make),
    doc="The tensor in another dtype; the tensor itself when that is its dtype and copy is False.",
)

op(
    "aten::to.device(Tensor(a) self, Device? device=None, ScalarType? dtype=None, bool non_blocking=False, bool "
    "copy=False, *, MemoryFormat? memory_format=None) -> Tensor(a)",
    compose="to_device",
    variants="method",
    types=_ALL,
    samples=_with(copy=True),
    doc="The tensor on a device and in a dtype; the tensor itself when nothing changes and copy is False.",
)

op(
    "aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, *, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    compose="to_other",
    variants="method",
    types=_ALL,
    samples=_like_other,
    doc="The tensor in the dtype and on the device of other.",
)

op(
    "aten::type_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    compose=lambda self, other: self.to(other.dtype),
    variants="method",
    types=_ALL,
    samples=_like_other,
    doc="The tensor in the dtype of other.",
)

op(
    "aten::cpu(Tensor(a) self, MemoryFormat? memory_format=None) -> Tensor(a)",
    compose="cpu",
    tags="data_dependent",
    variants="method",
    types=_ALL,
    samples=_likes,
    doc="The tensor in the computer's main memory.",
)

for _name, _dtype in (
    ("bool", "bool"),
    ("byte", "uint8"),
    ("char", "int8"),
    ("short", "int16"),
    ("int", "int32"),
    ("long", "int64"),
    ("half", "float16"),
    ("bfloat16", "bfloat16"),
    ("float", "float32"),
    ("double", "float64"),
    ("cfloat", "complex64"),
    ("cdouble", "complex128"),
):
    op(
        f"aten::{_name}(Tensor(a) self, MemoryFormat? memory_format=None) -> Tensor(a)",
        compose=f"to_{_name}",
        variants="method",
        types=_REAL,
        samples=_plain,
        doc=f"The tensor as {_dtype}.",
    )

# ---- values --------------------------------------------------------------------------------------------------------

# PyTorch's handlers of operations know the former as the latter.
for _name, _variants in (("item", "method"), ("_local_scalar_dense", "")):
    op(
        f"aten::{_name}(Tensor self) -> Scalar",
        kernel="item",
        shape=_no_data,
        tags="data_dependent",
        variants=_variants,
        types=_ALL,
        samples=lambda make: [Sample(make()), Sample(make(1, 1))],
        errors=[(lambda: __import__("tinygrad_ext").zeros(2).item(), RuntimeError, "cannot be converted to Scalar")],
        doc="The only element as a Python number.",
    )

op(
    "aten::tolist(Tensor self) -> Any",
    kernel="tolist",
    shape=_no_list,
    tags="data_dependent",
    variants="method",
    types=_ALL,
    samples=_likes,
    doc="The elements as nested lists of Python numbers; a number for a 0-d tensor.",
)

# ---- complex numbers -----------------------------------------------------------------------------------------------

op(
    "aten::view_as_real(Tensor(a) self) -> Tensor(a)",
    batch="leading",
    kernel="view_as_real",
    view=True,
    variants="function",
    types="complex",
    samples=_likes,
    errors=[(lambda: tg.view_as_real(tg.ones(2)), RuntimeError, "only supported for complex tensors")],
    grad={"self": lambda grad: _complex_of(grad)},
    doc="Complex numbers as pairs of real ones, in a last dimension of size 2, over the same memory.",
)

op(
    "aten::view_as_complex(Tensor(a) self) -> Tensor(a)",
    batch="leading",
    kernel="view_as_complex",
    view=True,
    variants="function",
    types="float",
    samples=_pairs,
    gaps={"layout": "refuses layouts whose pairs do not lie side by side; contiguous() first"},
    errors=[(lambda: tg.view_as_complex(tg.ones(3)), RuntimeError, "must have a last dimension of size 2")],
    grad={"self": lambda grad: _pairs_of(grad)},
    doc="Pairs of real numbers, in a last dimension of size 2, as complex ones over the same memory.",
)


def _complex_of(pairs):
    return tg.view_as_complex(pairs.contiguous())


def _pairs_of(numbers):
    return tg.view_as_real(numbers)


def _part(k):
    def part(self):
        if not self.is_conj():
            return _pairs_of(self).select(-1, k)
        found = _pairs_of(self._conj()).select(-1, k)
        return found._neg_view() if k else found

    return part


def _real(self):
    return _part(0)(self) if self.dtype.is_complex else self


def _imag(self):
    if not self.dtype.is_complex:
        raise RuntimeError(f"imag is not implemented for tensors with non-complex dtypes, got {self.dtype}")
    return _part(1)(self)


op(
    "aten::real(Tensor(a) self) -> Tensor(a)",
    compose=_real,
    variants="function",
    types="float complex",
    samples=_likes,
    doc="Real parts, over the same memory; a real tensor itself.",
)

op(
    "aten::imag(Tensor(a) self) -> Tensor(a)",
    compose=_imag,
    variants="function",
    types="complex",
    samples=_likes,
    doc="Imaginary parts of a complex tensor, over the same memory.",
)

op(
    "aten::_conj_physical(Tensor self) -> Tensor",
    scalar={"complex": "conj(x)"},
    where="_fused",
    variants="function",
    grad={"self": lambda grad: grad.conj_physical()},
    jvp="linear",
    reference="numpy.conj",
    doc="Conjugate of each element of a complex tensor, as a copy.",
)

op(
    "aten::conj_physical(Tensor(a) self) -> Tensor(a)",
    compose=lambda self: fused._conj_physical(self) if self.dtype.is_complex else self,
    variants="function method inplace out function_",
    types="bool int float half complex",
    samples=unary,
    reference="numpy.conj",
    tags="exact",
    doc="Conjugate of each element, as a copy; a real tensor itself.",
)

op(
    "aten::_conj(Tensor(a) self) -> Tensor(a)",
    batch="leading",
    kernel="_conj",
    view=True,
    types="complex",
    samples=_likes,
    grad={"self": lambda grad: grad.conj_physical()},
    reference="numpy.conj",
    errors=[(lambda: tg.ones(2)._conj(), RuntimeError, "a view of complex numbers")],
    doc="Conjugate of each element over the same memory: a view that has the conjugate bit where self does not.",
)

op(
    "aten::_neg_view(Tensor(a) self) -> Tensor(a)",
    batch="leading",
    kernel="_neg_view",
    view=True,
    types="int float half complex",
    samples=_likes,
    grad={"self": lambda grad: -grad},
    reference="numpy.negative",
    errors=[(lambda: tg.tensor([True])._neg_view(), NotImplementedError, "a view of signed numbers")],
    doc="Negative of each element over the same memory: a view that has the negative bit where self does not.",
)

op(
    "aten::conj(Tensor(a) self) -> Tensor(a)",
    compose=lambda self: self._conj() if self.dtype.is_complex else self,
    types="float complex",
    samples=_likes,
    doc="Conjugate of each element, as a view of the same memory; a real tensor itself.",
)

for _name, _bit in (("conj", "conjugate"), ("neg", "negative")):
    op(
        f"aten::resolve_{_name}(Tensor(a) self) -> Tensor(a)",
        compose=lambda self, _has=f"is_{_name}": self.clone() if getattr(self, _has)() else self,
        types="float complex",
        samples=_likes,
        doc=f"A copy that shows the same numbers without the {_bit} bit; a tensor that does not have it, itself.",
    )


def _complex_tangent(real, imag, real_tangent, imag_tangent):
    x, y = (tg.zeros_like(t) if d is None else d for t, d in ((real, real_tangent), (imag, imag_tangent)))
    return fused._complex(x, y)


op(
    "aten::_complex(Tensor real, Tensor imag) -> Tensor",
    kernel="_complex",
    batch="pointwise",
    where="_fused",
    variants="function",
    types="float",
    samples=_twos,
    grad={"real": lambda grad: _real(grad), "imag": lambda grad: _imag(grad)},
    jvp=_complex_tangent,
    reference=lambda real, imag: real + 1j * imag,
    errors=[(lambda: fused._complex(tg.ones(2), tg.ones(2).double()), RuntimeError, "of float32 or of float64")],
    doc="complex of two tensors of float32 or of float64.",
)


def _complex(real, imag):
    one, other = (TITLES.get(t.dtype.name, t.dtype.name) for t in (real, imag))  # those of brought dtypes
    if real.dtype.name not in ("float16", "float32", "float64"):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {one} and {other}")
    if one != other:
        raise RuntimeError(
            f"Expected object of scalar type {one} but got scalar type {other} for second argument: complex() joins "
            "two tensors of one dtype"
        )
    if one != "Half":
        return fused._complex(real, imag)
    return tg.view_as_complex(tg.stack(tg.broadcast_tensors(real, imag), -1))


op(
    "aten::complex(Tensor real, Tensor imag) -> Tensor",
    compose=_complex,
    refuses={"out": "Expected object of scalar type {wanted} but got scalar type {got} for argument 'out'"},
    variants="function out",
    types="float",
    samples=_twos,
    errors=[
        (lambda: tg.complex(tg.ones(2), tg.ones(2).double()), RuntimeError, "joins two tensors of one dtype"),
        (lambda: tg.complex(tg.tensor([1]), tg.tensor([1])), RuntimeError, "to be Half, Float or Double tensors"),
        (lambda: tg.complex(tg.ones(2), tg.ones(3)), RuntimeError, "which do not broadcast"),
    ],
    doc="Complex numbers from their real and imaginary parts.",
)
