"""Joins, parts and sizes of sparse tensors: as the same function of the plain tensor, and as PyTorch's where it is."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn

try:
    import torch
except ImportError:
    torch = None

PLACES = [[0, 1, 1], [2, 0, 2]]


def coo(T, requires_grad=False):
    return T.sparse_coo_tensor(
        T.tensor(PLACES), T.tensor([3.0, 4.0, 5.0]), (2, 3), requires_grad=requires_grad, check_invariants=True
    )


def twice(T):
    return T.sparse_coo_tensor(T.tensor([[0, 0], [1, 1]]), T.tensor([1.0, 2.0]), (2, 3), check_invariants=True)


def rows(T):
    return T.sparse_coo_tensor(T.tensor([[0, 2]]), T.tensor([[1.0, 2.0], [3.0, 4.0]]), (3, 2), check_invariants=True)


CALLS = {
    "cat": lambda T, t: T.cat([t, t, t]),
    "cat 1": lambda T, t: T.cat((t, t), dim=-1),
    "stack": lambda T, t: T.stack([t, t]),
    "stack 1": lambda T, t: T.stack([t, t], 1),
    "stack 2": lambda T, t: T.stack([t, t], -1),
    "hstack": lambda T, t: T.hstack([t, t]),
    "vstack": lambda T, t: T.vstack([t, t]),
    "unsqueeze 0": lambda T, t: t.unsqueeze(0),
    "unsqueeze 1": lambda T, t: t.unsqueeze(1),
    "unsqueeze -1": lambda T, t: t.unsqueeze(-1),
    "select 0": lambda T, t: t.select(0, 1),
    "select 1": lambda T, t: t.select(-1, -1),
    "item": lambda T, t: t[1],
    "unbind": lambda T, t: t.unbind()[0],
    "iteration": lambda T, t: list(t)[1],
    "sum 0": lambda T, t: t.sum(0),
    "sum 1": lambda T, t: t.sum(1, keepdim=True),
    "sum 0, 1": lambda T, t: t.sum((0, 1)),
    "any": lambda T, t: t.any(),
    "frac": lambda T, t: t.frac(),
    "sgn": lambda T, t: (-t).sgn(),
    "isnan": lambda T, t: t.isnan(),
    "floor": lambda T, t: t // 2,
    "positive": lambda T, t: +t,
}
NARROWED = {
    "narrow 0": lambda T, t: t.narrow_copy(0, 1, 1),
    "narrow 1": lambda T, t: t.narrow_copy(1, 1, 1),
}


def dense(t):
    return t.to_dense() if t.layout is not tg.strided and str(t.layout) != "torch.strided" else t


@pytest.mark.parametrize("kind", (coo, twice, rows), ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", [*CALLS, *NARROWED])
def test_as_of_the_plain_tensor(name, kind):
    call = (CALLS | NARROWED)[name]
    found = call(tg, kind(tg))
    assert dense(found).tolist() == call(tg, kind(tg).to_dense()).tolist()
    if torch is not None:
        expected = call(torch, kind(torch))
        assert str(found.layout) == str(expected.layout) and tuple(found.shape) == tuple(expected.shape)
        assert str(found.dtype) == str(expected.dtype) and dense(found).tolist() == dense(expected).tolist()
        if expected.is_sparse:
            assert (found.sparse_dim(), found.dense_dim()) == (expected.sparse_dim(), expected.dense_dim())


def test_dimensions_move_among_places_and_among_values():
    t = coo(tg)
    for found in (t.permute(1, 0), t.permute((1, 0)), t.movedim(0, 1), t.H):
        assert found.to_dense().tolist() == t.to_dense().T.tolist()
    deep = tg.sparse_coo_tensor([[0, 2]], tg.arange(12.0).reshape(2, 2, 3), (3, 2, 3))
    assert deep.permute(0, 2, 1).to_dense().tolist() == deep.to_dense().permute(0, 2, 1).tolist()
    with pytest.raises(RuntimeError, match="transpositions between sparse and dense dimensions are not allowed"):
        deep.permute(1, 0, 2)
    with pytest.raises(RuntimeError, match="duplicate dims are not allowed"):
        t.permute(0, 0)
    with pytest.raises(RuntimeError, match="number of dimensions in the tensor input does not match"):
        t.permute(0)


def test_gradients_pass():
    for call in (CALLS | NARROWED).values():
        t = coo(tg, requires_grad=True)
        found = call(tg, t)
        if found.dtype == tg.bool:
            continue
        dense(found).sum().backward()
        plain = coo(tg).to_dense().requires_grad_()
        call(tg, plain).sum().backward()
        expected = plain.grad * (coo(tg).to_dense() != 0)
        assert t.grad.to_dense().tolist() == expected.tolist()


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: tg.cat([coo(tg), tg.ones(2, 3)]), RuntimeError, "a dense tensor was found at position 1"),
        (lambda: tg.cat([coo(tg), rows(tg)]), RuntimeError, "must have the same shape"),
        (lambda: tg.cat([coo(tg), coo(tg).to_dense().to_sparse(1)], 1), RuntimeError, "number of sparse dimensions: 2"),
        (lambda: tg.stack([coo(tg), rows(tg)]), RuntimeError, "stack expects each tensor to be equal size"),
        (lambda: tg.cat([coo(tg)], 3), IndexError, "Dimension out of range"),
        (lambda: coo(tg).transpose(0, 5), IndexError, "Dimension out of range"),
        (lambda: coo(tg).norm(dim=(0, 3)), IndexError, "Dimension out of range"),
        (lambda: coo(tg).unsqueeze(4), IndexError, "Dimension out of range"),
        (lambda: coo(tg).select(0, 5), IndexError, "index 5 out of range for tensor of size"),
        (lambda: coo(tg).narrow_copy(0, 0, 5), RuntimeError, "Invalid range to narrow"),
        (lambda: coo(tg).sparse_resize_((1, 3), 2, 0), RuntimeError, "shrinking the size of sparse dimensions"),
        (lambda: coo(tg).sparse_resize_((4, 4, 2), 2, 1), RuntimeError, "changing the number of dense dimensions"),
        (lambda: coo(tg).sparse_resize_((4, 4), 1, 0), RuntimeError, "is not satisfied"),
        (lambda: coo(tg).copy_(tg.ones(2, 3)), RuntimeError, "between dense and sparse Tensors is not implemented"),
        (lambda: tg.ones(2, 3).copy_(coo(tg)), RuntimeError, "between dense and sparse Tensors is not implemented"),
        (lambda: coo(tg).resize_as_(tg.ones(2, 3)), NotImplementedError, "a plain and a sparse tensor"),
        (lambda: coo(tg, True).copy_(coo(tg)), RuntimeError, "a leaf Variable that requires grad"),
        (lambda: coo(tg).to_sparse_csr().unsqueeze(0), RuntimeError, "to_sparse_coo"),
        (lambda: tg.empty_like(coo(tg), memory_format=tg.channels_last), RuntimeError, "only supported by strided"),
        (lambda: coo(tg).any(0), NotImplementedError, "only that of all elements"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_sizes_in_place():
    t = coo(tg)
    assert t.sparse_resize_((4, 4), 2, 0) is t and t.shape == (4, 4) and t.to_dense()[1, 2].item() == 5
    assert t.resize_as_(tg.sparse_coo_tensor(size=(5, 6))).shape == (5, 6) and t._nnz() == 3
    t.sparse_resize_and_clear_((2, 3, 2), 2, 1)
    assert t._nnz() == 0 and t.dense_dim() == 1 and t.to_dense().tolist() == tg.zeros(2, 3, 2).tolist()
    grown = rows(tg).sparse_resize_((4, 3), 1, 1)
    assert grown.to_dense().tolist() == [[1, 2, 0], [0, 0, 0], [3, 4, 0], [0, 0, 0]]
    kept = coo(tg).double()
    assert kept.copy_(coo(tg)) is kept and kept.dtype == tg.float64 and tg.equal(kept, coo(tg).double())
    csr = coo(tg).to_sparse_csr()
    csr.copy_((coo(tg) * 2).to_sparse_csr())
    assert csr.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]] and csr.crow_indices().tolist() == [0, 1, 3]
    assert csr.select(0, 1).is_sparse and csr[1].to_dense().tolist() == [8, 0, 10]


@pytest.mark.parametrize("layout", ("csr", "csc"))
def test_matrices_are_written_to(layout):
    t = getattr(coo(tg), f"to_sparse_{layout}")()
    kept = t
    t.mul_(2).neg_()
    assert t.to_dense().tolist() == [[0, 0, -6], [-8, 0, -10]]
    t += getattr(twice(tg), f"to_sparse_{layout}")()
    assert t is kept and t.layout == getattr(tg, f"sparse_{layout}")
    assert t.to_dense().tolist() == [[0, 3, -6], [-8, 0, -10]] and t.values().numel() == 4


def test_masks_of_all_layouts():
    whole = tg.arange(6.0).reshape(2, 3)
    for mask in (coo(tg), twice(tg), coo(tg).to_sparse_csr(), coo(tg).to_sparse_csc()):
        for given in (whole, whole.to_sparse(), whole.to_sparse_csr()):
            found = given.sparse_mask(mask)
            assert found.layout is mask.layout
            assert found._values().tolist() == whole[tuple(mask._indices().unbind(0))].tolist()
    for given in (whole, whole.to_sparse()):
        with pytest.raises(TypeError, match=r"sparse_mask\(\): expected a .*mask"):
            given.sparse_mask(whole)
    with pytest.raises(RuntimeError, match="have to be of one size"):
        whole.sparse_mask(rows(tg))


def test_of_nothing():
    t = coo(tg)
    for made in (t.new_zeros(2, 2), t.new_empty((2, 2)), tg.empty_like(tg.sparse_coo_tensor(size=(2, 2)))):
        assert made.is_sparse and made.shape == (2, 2) and made._nnz() == 0
    assert t.element_size() == 4 and t.is_same_size(t) and not t.is_contiguous()


def test_gradients_that_are_sparse():
    leaf = tg.ones(2, 3, requires_grad=True)
    leaf.backward(coo(tg))
    leaf.backward(coo(tg))
    assert leaf.grad.is_sparse and leaf.grad.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
    plain = tg.ones(2, 3, requires_grad=True)
    (plain * 2).backward(coo(tg))
    assert plain.grad.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
    t = coo(tg, requires_grad=True)
    (t * 3).backward(coo(tg))
    assert t.grad.to_dense().tolist() == [[0, 0, 9], [12, 0, 15]]
    (found,) = tg.autograd.grad((t * t.to_dense()).to_dense().sum(), t)
    assert found.is_sparse and found.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        (t * 3).backward()
    with pytest.raises(RuntimeError, match=r"expected a gradient of the size \[2, 3\], but got \[3, 2\]"):
        leaf.backward(rows(tg))


def test_hooks_and_parameters():
    t, seen = coo(tg, requires_grad=True), []
    t.register_hook(lambda g: seen.append(g.layout) or g * 2)
    (t * 3).to_dense().sum().backward()
    assert seen == [tg.sparse_coo] and t.grad.to_dense().tolist() == [[0, 0, 6], [6, 0, 6]]
    assert t.is_leaf and t.grad_fn is None and not (t * 3).is_leaf and (t * 3).grad_fn is not None
    p = nn.Parameter(coo(tg))
    assert isinstance(p, nn.Parameter) and p.is_sparse and p.requires_grad
    (p @ tg.ones(3, 1)).sum().backward()
    assert p.grad.to_dense().tolist() == [[0, 0, 1], [1, 0, 1]]
