"""Rows by number, classes as vectors, dropout."""

import tinygrad_ext as tg
from tinygrad_ext.ops import batching_layers, sparse_gradients
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

# ---- embedding -----------------------------------------------------------------------------------------------------


def _embedding_samples(make):
    yield Sample(make(5, 3), make.ints(0, 5, (4,)))
    yield Sample(make(5, 3), make.ints(2, 5, (2, 3)), padding_idx=1)
    yield Sample(make(5, 3), make.ints(0, 5, ()))
    yield Sample(make(5, 3), make.ints(0, 5, (0,)))


op(
    "aten::embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool "
    "sparse=False) -> Tensor",
    batch=batching_layers.embedding,
    kernel="embedding",
    variants="function",
    samples=_embedding_samples,
    reference=lambda weight, indices, **_: weight[indices],
    grad={
        "weight": lambda grad, weight_shape, indices, padding_idx, scale_grad_by_freq, sparse: (
            sparse_gradients.rows(grad, weight_shape, indices, padding_idx, scale_grad_by_freq)
            if sparse and sparse_gradients.wanted()
            else fused.embedding_dense_backward(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)
        )
    },
    jvp="linear",
    doc="Rows of weight (rows, size) by indices of any shape. The row padding_idx gets no gradient; scale_grad_by_freq "
    "divides a row's gradient by the number of times it was looked up. With sparse the gradient is of the layout "
    "sparse_coo, but in graphs and transforms.",
)


def _backward_twice(grad, grad_output, indices, padding_idx, scale_grad_by_freq):
    rows = fused.embedding(grad, indices)
    if padding_idx >= 0:
        rows = rows * (indices != padding_idx).unsqueeze(-1)
    if scale_grad_by_freq:
        often = (indices.reshape(-1, 1) == indices.reshape(1, -1)).sum(1).reshape(indices.shape)
        rows = rows / often.unsqueeze(-1)
    return rows


def _np_embedding_back(grad, indices, rows, padding_idx, by_count):
    import numpy as np

    out, count = np.zeros((rows, grad.shape[-1]), grad.dtype), np.bincount(indices, minlength=rows)
    np.add.at(out, indices, grad / count[indices, None] if by_count else grad)
    out[[] if padding_idx < 0 else padding_idx] = 0
    return out


op(
    "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    batch=batching_layers.embedding_backward,
    kernel="embedding_backward",
    variants="function",
    samples=lambda make: [
        Sample(make(4, 3), make.ints(0, 5, (4,)), 5, -1, False),
        Sample(make(4, 3), make.ints(0, 3, (4,)), 5, 1, True),
    ],
    grad={"grad_output": _backward_twice},
    jvp="linear",
    reference=_np_embedding_back,
    doc="Sum of the gradients of each row that embedding looked up.",
)


def _np_renorm(weight, indices, max_norm, norm_type):
    import numpy as np

    out = weight.copy()
    for row in np.unique(indices):
        norm = (abs(out[row]) ** norm_type).sum() ** (1 / norm_type)
        out[row] *= max_norm / (norm + 1e-7) if norm > max_norm else 1
    return out


op(
    "aten::_embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
    batch=batching_layers.embedding_renorm,
    kernel="embedding_renorm",
    variants="function",
    where="_fused",
    samples=lambda make: iter([Sample(make(5, 3).detach(), make.ints(0, 5, (4,)), 1.0, p) for p in (1.0, 2.0, 3.0)]),
    reference=_np_renorm,
    doc="The rows named by indices, shortened to a norm_type-norm of at most max_norm; the other rows as they are.",
)


def embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse):
    """nn.functional.embedding with any arguments; the compiled composite comes here for all but the plain call."""
    rows = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -rows <= padding_idx < rows:
            raise AssertionError(f"Padding_idx must be within num_embeddings: got {padding_idx} for {rows} rows")
        padding_idx %= rows
    if max_norm is not None:
        with tg.no_grad():
            weight.detach().copy_(fused._embedding_renorm(weight, input, max_norm, norm_type))
    return tg.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _functional_samples(make):
    for shape in ((4,), (2, 3), (), (0,)):
        yield Sample(make.ints(0, 5, shape), make(5, 3))


op(
    "aten::embedding.functional(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, "
    "float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    compose="embedding_functional",
    variants="function",
    where="nn.functional",
    samples=_functional_samples,
    reference=lambda indices, weight, **_: weight[indices],
    doc="Rows of weight (rows, size) by the numbers in input. max_norm first shortens the rows in use, in place.",
)

# ---- classes as vectors --------------------------------------------------------------------------------------------


def _np_one_hot(x, num_classes=-1):
    import numpy as np

    return np.eye(x.max() + 1 if num_classes == -1 else num_classes, dtype=np.int64)[x]


op(
    "aten::one_hot(Tensor self, int num_classes=-1) -> Tensor",
    batch=batching_layers.one_hot,
    kernel="one_hot",
    variants="function",
    where="nn.functional",
    samples=lambda make: iter(
        [
            Sample(make.ints(0, 4, (2, 3)), 4),
            Sample(make.ints(0, 4, (5,)), 6),
            Sample(make.ints(0, 4, (0,)), 3),
            Sample(make.ints(0, 4, ()), num_classes=4),
        ]
    ),
    reference=_np_one_hot,
    doc="Vectors of zeros with a one at the class number; num_classes -1 takes the largest number plus one.",
)

# ---- dropout -------------------------------------------------------------------------------------------------------


def _check_p(p, error=ValueError):
    if not 0.0 <= p <= 1.0:
        raise error(f"dropout probability has to be between 0 and 1, but got {p}")


def _drop(input, p, training, inplace, channels=False):
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        zero = input.detach().new_zeros(())
        return input.mul_(zero) if inplace else input * zero
    if not input.dtype.is_floating_point and not input.dtype.is_complex:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {input.dtype}: dropout needs floats"
        )
    if not inplace and not channels and input.dtype in (tg.float32, tg.float64):
        return fused._dropout_step(input, 1 - p)[0]
    noise = fused._dropout_noise(input.detach(), p, channels)
    return input.mul_(noise) if inplace else input * noise


def _dropout(input, p, training, inplace):
    if not 0.0 <= p <= 1.0:
        _check_p(p)
    return _drop(input, p, training, inplace)


def _dropout_top(input, p, train):
    _check_p(p, RuntimeError)
    return _drop(input, p, train, False)


def _dropout_samples(make):
    yield Sample(make(3, 4), p=0.0)
    yield Sample(make(3, 4), p=1.0)
    yield Sample(make(3, 4), training=False)
    yield Sample(make(0, 2))


op(
    "aten::dropout.functional(Tensor(a) input, float p=0.5, bool training=True, bool inplace=False) -> Tensor(a)",
    compose=_dropout,
    tags="draws",
    variants="function",
    where="nn.functional",
    samples=_dropout_samples,
    reference=lambda x, p=0.5, training=True: x * (0.0 if p == 1.0 else 1.0),
    doc="While training, set each element to zero with probability p and divide the others by 1 - p.",
)

op(
    "aten::dropout(Tensor(a) input, float p, bool train) -> Tensor(a)",
    compose=_dropout_top,
    tags="draws",
    variants="function",
    samples=lambda make: iter([Sample(make(3, 4), 0.0, True), Sample(make(3, 4), 0.5, False)]),
    reference=lambda x, p, train: x,
    doc="nn.functional.dropout with all arguments.",
)

op(
    "aten::_dropout_noise(Tensor self, float p, bool channels, *, Generator? generator=None) -> Tensor",
    kernel="dropout_noise",
    variants="function",
    where="_fused",
    samples=lambda make: iter([Sample(make(3, 4), 0.5, False), Sample(make(2, 3, 4), 0.1, True)]),
    tags="random",
    doc="Factors of dropout: zero with probability p, else 1 / (1 - p), for each element or each channel of each "
    "example.",
)


def _channel_dropout(name, ranks, input, p, training, inplace):
    """Dropout of whole channels; an input without the batch dimension counts as one example."""
    _check_p(p)
    rank = input.dim()
    alone = name != "dropout2d" and rank == ranks[0]
    if name == "dropout2d" and rank == 3:
        _warn_of_rank(
            "dropout2d: Received a 3-D input to dropout2d, which is taken as (N, C, L), as dropout1d takes it. For a "
            "single image (C, H, W) add the batch dimension with unsqueeze(0)."
        )
    elif rank not in ranks:
        expected = f"{name}: Expected {ranks[0]}D or {ranks[1]}D input, but received a {rank}D input."
        if name == "dropout1d":
            raise RuntimeError(f"{expected} It drops whole channels; dropout drops single elements.")
        alone = name == "dropout3d"  # whatever has not five dimensions is one example
        _warn_of_rank(
            f"{name}: Received a {rank}-D input to {name}, which takes {ranks[0]} or {ranks[1]} dimensions. It is "
            f"taken as {'(C, *)' if alone else '(N, C, *)'}, whose channels are dropped; dropout drops single elements."
        )
        if rank + alone < 2 and training and p != 0:
            raise RuntimeError(f"{expected} There are no channels to drop; dropout drops single elements.")
    if alone:
        found = _drop(input.unsqueeze(0), p, training, inplace, True).squeeze(0)
        return input if inplace else found
    return _drop(input, p, training, inplace, True)


def _warn_of_rank(text):
    import warnings

    warnings.warn(text, UserWarning, stacklevel=4)  # where dropout2d or dropout3d is called


op(
    "aten::dropout1d(Tensor(a) input, float p=0.5, bool training=True, bool inplace=False) -> Tensor(a)",
    compose=lambda *args: _channel_dropout("dropout1d", (2, 3), *args),
    tags="draws",
    variants="function",
    where="nn.functional",
    samples=lambda make: iter([Sample(make(2, 3, 4), p=0.0), Sample(make(2, 3), training=False)]),
    reference=lambda x, **_: x,
    doc="Dropout of whole channels of (N, C, L) or (C, L).",
)

op(
    "aten::dropout2d(Tensor(a) input, float p=0.5, bool training=True, bool inplace=False) -> Tensor(a)",
    compose=lambda *args: _channel_dropout("dropout2d", (3, 4), *args),
    tags="draws",
    variants="function",
    where="nn.functional",
    samples=lambda make: iter([Sample(make(2, 3, 4, 2), p=0.0), Sample(make(2, 3, 4, 2), training=False)]),
    reference=lambda x, **_: x,
    doc="Dropout of whole channels of (N, C, H, W). Three dimensions are taken as (N, C, L), with a warning.",
)

op(
    "aten::dropout3d(Tensor(a) input, float p=0.5, bool training=True, bool inplace=False) -> Tensor(a)",
    compose=lambda *args: _channel_dropout("dropout3d", (4, 5), *args),
    tags="draws",
    variants="function",
    where="nn.functional",
    samples=lambda make: iter([Sample(make(2, 3, 1, 2, 2), p=0.0)]),
    reference=lambda x, **_: x,
    doc="Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).",
)
