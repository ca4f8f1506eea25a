"""Views as copies, and small ways to put elements elsewhere: put and index_reduce."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching_index
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.shapes import wrapped

_ALL = "bool int float half complex"


def _copied(view):
    def run(*args):
        made = view(*args)
        if isinstance(made, (tuple, list)):
            return tuple([t.clone(memory_format=tg.contiguous_format) for t in made])
        return made.clone(memory_format=tg.contiguous_format)

    return run


for _name, _arguments, _view, _samples in (
    ("alias_copy", "Tensor self", lambda x: x, lambda make: [Sample(make(2, 3))]),
    ("detach_copy", "Tensor self", lambda x: x.detach(), lambda make: [Sample(make(2, 3))]),
    (
        "as_strided_copy",
        "Tensor self, int[] size, int[] stride, int? storage_offset=None",
        lambda x, size, stride, offset: x.as_strided(size, stride, offset),
        lambda make: [Sample(make(1), (1, 1), (1, 1))],
    ),
    (
        "diagonal_copy",
        "Tensor self, int offset=0, int dim1=0, int dim2=1",
        lambda x, *args: x.diagonal(*args),
        lambda make: [Sample(make(3, 4)), Sample(make(2, 3, 3), 1, 1, 2)],
    ),
    (
        "expand_copy",
        "Tensor self, int[] size, *, bool implicit=False",
        lambda x, size, implicit: x.expand(size),
        lambda make: [Sample(make(3, 1), (3, 4)), Sample(make(2), (3, 2))],
    ),
    (
        "permute_copy",
        "Tensor self, int[] dims",
        lambda x, dims: x.permute(dims),
        lambda make: [Sample(make(2, 3), (1, 0))],
    ),
    (
        "select_copy",
        "Tensor self, int dim, int index",
        lambda x, *args: x.select(*args),
        lambda make: [Sample(make(2, 3), 1, -1)],
    ),
    (
        "slice_copy",
        "Tensor self, int dim=0, int? start=None, int? end=None, int step=1",
        lambda x, dim, start, end, step: x[(slice(None),) * (dim % max(x.dim(), 1)) + (slice(start, end, step),)],
        lambda make: [Sample(make(5, 3), 0, 1, 4, 2), Sample(make(2, 4), -1)],
    ),
    (
        "split_copy",
        "Tensor self, int split_size, int dim=0",
        lambda x, *args: x.split(*args),
        lambda make: [Sample(make(5, 2), 2), Sample(make(2, 4), 3, 1)],
    ),
    (
        "split_with_sizes_copy",
        "Tensor self, int[] split_sizes, int dim=0",
        lambda x, sizes, dim: x.split_with_sizes(sizes, dim),
        lambda make: [Sample(make(5, 2), (2, 3))],
    ),
    ("squeeze_copy", "Tensor self", lambda x: x.squeeze(), lambda make: [Sample(make(2, 1, 3))]),
    (
        "squeeze_copy.dim",
        "Tensor self, int dim",
        lambda x, dim: x.squeeze(dim),
        lambda make: [Sample(make(2, 1, 3), 1)],
    ),
    (
        "squeeze_copy.dims",
        "Tensor self, int[] dim",
        lambda x, dim: x.squeeze(dim),
        lambda make: [Sample(make(1, 2, 1), (0, 2))],
    ),
    ("t_copy", "Tensor self", lambda x: x.t(), lambda make: [Sample(make(2, 3)), Sample(make(3))]),
    (
        "transpose_copy",
        "Tensor self, int dim0, int dim1",
        lambda x, *dims: x.transpose(*dims),
        lambda make: [Sample(make(2, 3, 1), 0, -1)],
    ),
    ("unbind_copy", "Tensor self, int dim=0", lambda x, dim: x.unbind(dim), lambda make: [Sample(make(2, 3), 1)]),
    (
        "unfold_copy",
        "Tensor self, int dimension, int size, int step",
        lambda x, *args: x.unfold(*args),
        lambda make: [Sample(make(5, 2), 0, 3, 1)],
    ),
    (
        "view_as_complex_copy",
        "Tensor self",
        lambda x: tg.view_as_complex(x.clone(memory_format=tg.contiguous_format)),
        lambda make: [Sample(make(3, 2))],
    ),
    (
        "view_as_real_copy",
        "Tensor self",
        lambda x: tg.view_as_real(x),
        lambda make: [Sample(make(3, 2))],
    ),
    ("unsqueeze_copy", "Tensor self, int dim", lambda x, dim: x.unsqueeze(dim), lambda make: [Sample(make(2, 3), 1)]),
    (
        "view_copy",
        "Tensor self, int[] size",
        lambda x, size: x.view(size),
        lambda make: [Sample(make(2, 3), (2, 1, 3))],
    ),
    (
        "view_copy.dtype",
        "Tensor self, ScalarType dtype",
        lambda x, dtype: x.view(dtype),
        lambda make: [Sample(make(2, 3), make.dtype)],
    ),
):
    _several = _name.startswith(("split", "unbind"))
    op(
        f"aten::{_name}({_arguments}) -> Tensor{'[]' if _several else ''}",
        compose=_copied(_view),
        types={"view_as_complex_copy": "float", "view_as_real_copy": "complex"}.get(_name, _ALL),
        variants="function out",
        samples=_samples,
        doc=f"What {_name.partition('_copy')[0]} gives, in memory of its own.",
    )


# ---- put -----------------------------------------------------------------------------------------------------------


def _put_reference(x, index, source, accumulate=False):
    import numpy

    out = x.reshape(-1).copy()
    if accumulate:
        numpy.add.at(out, index.reshape(-1), source.reshape(-1))
    else:
        out[index.reshape(-1)] = source.reshape(-1)
    return out.reshape(x.shape)


op(
    "aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    batch=batching_index.put,
    kernel="put",
    grad={
        "self": lambda grad, index, accumulate: grad if accumulate else grad.put(index, grad.new_zeros(index.shape)),
        "source": lambda grad, index, source_shape: grad.take(index).reshape(source_shape),
    },
    jvp="linear",
    types="bool int float half complex",
    variants="function method inplace",
    samples=lambda make: [
        Sample(make(2, 3), make.of([[0], [-1]]), make(2)),
        Sample(make(4), make.of([1, 3, 1]), make(3), True),
    ],
    reference=_put_reference,
    errors=[
        (lambda: zeros(3).put(zeros(2).long(), zeros(1)), IndexError, "the same number of elements"),
        (lambda: zeros(3).put(zeros(1).int(), zeros(1)), IndexError, "Expected a long tensor for index"),
        (lambda: zeros(3).put(zeros(1).long(), zeros(1).double()), RuntimeError, "to have the same dtype"),
        (lambda: zeros(3).put(zeros(1).long() + 3, zeros(1)), IndexError, "out of range"),
        (lambda: zeros(0).put(zeros(1).long(), zeros(1)), IndexError, "into an empty tensor"),
    ],
    tags="moves others_apart",
    doc="self with elements of source at places counted as in one row; with accumulate they are added.",
)


def _index_reduce(self, dim, index, source, reduce, include_self):
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if index.dim() > 1 or index.dtype not in (tg.int32, tg.int64):
        raise IndexError("index_reduce(): Expected a vector of int32 or int64 numbers for index")
    if not self.dim():
        return _index_reduce(self.reshape(1), 0, index, source.reshape(1), reduce, include_self).reshape(())
    dim = wrapped(dim, self.dim())
    at = index.to(tg.int64).reshape([-1 if i == dim else 1 for i in range(self.dim())]).expand(source.shape)
    return self.scatter_reduce(dim, at, source, reduce, include_self=include_self)


op(
    "aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
    "include_self=True) -> Tensor",
    compose=_index_reduce,
    types="int float half",
    variants="function method inplace out",
    samples=lambda make: [
        Sample(make(3, 4), 0, make.of([0, 2]), make(2, 4), "amax"),
        Sample(make(3), 0, make.of([1, 0]), make(2), "mean", include_self=False),
        Sample(make(2, 3), -1, make.of([0, 0]), make(2, 2), "amin"),
    ],
    errors=[
        (lambda: _index_reduce(zeros(2), 1, zeros(1).long(), zeros(1), "prod", True), IndexError, "out of range"),
        (
            lambda: _index_reduce(zeros(2), 0, zeros(1).long(), zeros(1), "sum", True),
            RuntimeError,
            "Expected reduce to be one of prod, mean, amax or amin",
        ),
    ],
    tags="others_apart",
    doc="The entries of one dimension that index names, reduced together with those of source.",
)
