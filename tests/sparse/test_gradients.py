"""Sparse gradients: what looks up rows gives them where it is asked to, `.grad` adds them up, optimizers take or refuse
them."""

import copy
import importlib.util
import pickle

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.nn import functional as F

AT = [[1, 2], [1, 3]]


def table(T=tg, dtype="float64"):
    return T.arange(12, dtype=getattr(T, dtype)).reshape(4, 3).sin().requires_grad_()


def embedding(T, w, **options):
    return T.nn.functional.embedding(T.tensor(AT), w, **options)


def bags(T, w, **options):
    at, starts = T.tensor([1, 2, 1, 3, 0]), T.tensor([0, 2, 2])
    return T.nn.functional.embedding_bag(at, w, starts, **options)


def weighted(T, w, **options):
    factors = T.tensor([[0.5, 2.0], [3.0, 4.0]], dtype=w.dtype)
    return T.nn.functional.embedding_bag(T.tensor(AT), w, mode="sum", per_sample_weights=factors, **options)


READERS = {
    "embedding": lambda T, w, on: embedding(T, w, sparse=on),
    "embedding_padded": lambda T, w, on: embedding(T, w, padding_idx=1, sparse=on),
    "embedding_of_int32": lambda T, w, on: T.nn.functional.embedding(T.tensor(AT, dtype=T.int32), w, sparse=on),
    "embedding_of_nothing": lambda T, w, on: T.nn.functional.embedding(T.tensor([], dtype=T.int64), w, sparse=on),
    "embedding_of_a_number": lambda T, w, on: T.nn.functional.embedding(T.tensor(2), w, sparse=on),
    "bags": lambda T, w, on: bags(T, w, sparse=on),
    "bags_summed": lambda T, w, on: bags(T, w, mode="sum", sparse=on),
    "bags_padded": lambda T, w, on: bags(T, w, padding_idx=1, sparse=on),
    "bags_of_nothing": lambda T, w, on: T.nn.functional.embedding_bag(
        T.zeros(0, dtype=T.int64), w, T.tensor([0, 0]), padding_idx=0, sparse=on
    ),
    "bags_weighted": lambda T, w, on: weighted(T, w, sparse=on),
    "bags_weighted_padded": lambda T, w, on: weighted(T, w, padding_idx=2, sparse=on),
    "gather_rows": lambda T, w, on: T.gather(w, 0, T.tensor([[0, 1], [1, 1]]), sparse_grad=on),
    "gather_columns": lambda T, w, on: w.gather(-1, T.tensor([[0, 1], [1, 1]]), sparse_grad=on),
}


@pytest.mark.parametrize("name", READERS)
def test_the_gradient_is_the_plain_one_without_its_zeros(name):
    w, plain = table(), table()
    for start, sparse in ((w, True), (plain, False)):
        out = READERS[name](tg, start, sparse)
        (out * tg.arange(out.numel(), dtype=tg.float64).reshape(out.shape)).sum().backward()
    assert w.grad.is_sparse and w.grad.layout is tg.sparse_coo and w.grad.shape == w.shape
    np.testing.assert_allclose(w.grad.to_dense().numpy(), plain.grad.numpy(), 1e-14)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", READERS)
def test_stores_what_pytorchs_stores(name):
    import torch

    found = []
    for library in (tg, torch):
        w = table(library)
        out = READERS[name](library, w, True)
        assert out.requires_grad
        (out * library.arange(out.numel(), dtype=library.float64).reshape(out.shape)).sum().backward()
        found.append(w.grad)
    ours, theirs = found
    assert ours.is_coalesced() == theirs.is_coalesced()
    assert ours._indices().tolist() == theirs._indices().tolist()
    np.testing.assert_allclose(ours._values().numpy(), theirs._values().numpy(), 1e-14)
    assert ours._values().shape == theirs._values().shape


def test_gradients_add_up_in_every_order():
    for first, second in ((True, True), (True, False), (False, True)):
        w = table()
        embedding(tg, w, sparse=first).sum().backward()
        before = w.grad
        embedding(tg, w, sparse=second).sum().backward()
        assert w.grad.is_sparse == (first and second)
        assert (w.grad is before) == (first == second or not first)
        whole = w.grad.to_dense() if w.grad.is_sparse else w.grad
        assert whole[:, 0].tolist() == [0.0, 4.0, 2.0, 2.0]
        if w.grad.is_sparse:
            assert not w.grad.is_coalesced() and w.grad._nnz() == 8
    for sparse in ((True, False), (False, True), (True, True)):  # within one pass
        w = table()
        sum(embedding(tg, w, sparse=s).sum() for s in sparse).backward()
        whole = w.grad.to_dense() if w.grad.is_sparse else w.grad
        assert w.grad.is_sparse == all(sparse) and whole[:, 0].tolist() == [0.0, 4.0, 2.0, 2.0]


def test_a_table_that_was_computed_gets_its_gradient_with_the_zeros():
    for make in (
        lambda w: w * w,
        lambda w: w.exp()[:],
        lambda w: w.t().contiguous().t(),
        lambda w: F.layer_norm(w, (3,)),
    ):
        grads = []
        for sparse in (True, False):
            w = table()
            embedding(tg, make(w), sparse=sparse).pow(2).sum().backward()
            grads.append(w.grad)
        assert not grads[0].is_sparse
        np.testing.assert_allclose(grads[0].numpy(), grads[1].numpy(), 1e-13)


def test_hooks_and_functions_get_the_sparse_tensor():
    seen = []

    class Doubled(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(grad.layout)
            return grad * 2

    w = table()
    w.register_hook(lambda grad: seen.append(grad.layout) or grad * 3)
    w.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.layout))
    embedding(tg, Doubled.apply(w), sparse=True).sum().backward()
    assert seen == [tg.sparse_coo] * 3
    assert w.grad.to_dense()[:, 0].tolist() == [0.0, 12.0, 6.0, 6.0]


def test_gradients_of_gradients():
    w = table()
    (grad,) = tg.autograd.grad(embedding(tg, w, sparse=True).pow(3).sum(), w, create_graph=True)
    assert grad.is_sparse and grad.requires_grad
    (second,) = tg.autograd.grad(grad.to_dense().sum(), w)
    plain = table()
    (first,) = tg.autograd.grad(embedding(tg, plain).pow(3).sum(), plain, create_graph=True)
    np.testing.assert_allclose(second.to_dense().numpy(), tg.autograd.grad(first.sum(), plain)[0].numpy(), 1e-14)


def test_a_gradient_is_cleared_clipped_and_copied():
    w = nn.Parameter(table().detach())
    optimizer = tg.optim.SGD([w], lr=0.1)
    embedding(tg, w, sparse=True).sum().backward()
    norm = nn.utils.clip_grad_norm_([w], 1.0)
    assert float(norm) == pytest.approx((3 * (4 + 1 + 1)) ** 0.5)  # of the rows once, not of what is stored twice
    assert float(w.grad.to_dense().norm()) == pytest.approx(1.0)
    nn.utils.clip_grad_value_([w], 0.3)
    assert float(w.grad.to_dense().max()) == pytest.approx(0.3)
    for other in (copy.deepcopy(w.grad), pickle.loads(pickle.dumps(w.grad)), w.grad.clone()):
        assert other is not w.grad and other.is_sparse and other.to_dense().equal(w.grad.to_dense())
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.is_sparse and w.grad._nnz() == 0 and not w.grad.to_dense().any()
    embedding(tg, w, sparse=True).sum().backward()
    assert w.grad.to_dense()[:, 0].tolist() == [0.0, 2.0, 1.0, 1.0]
    optimizer.zero_grad()
    assert w.grad is None


def test_a_long_sum_stays_bounded():
    w = nn.Parameter(table().detach())
    optimizer = tg.optim.SGD([w], lr=0.0, momentum=0.5)
    for _ in range(20):
        optimizer.zero_grad()
        embedding(tg, w, sparse=True).sum().backward()
        optimizer.step()
    buffer = optimizer.state[w]["momentum_buffer"]
    assert buffer.is_sparse and buffer._nnz() <= 8
    np.testing.assert_allclose(buffer.to_dense()[:, 0].numpy(), [0, 4, 2, 2], 1e-5)


def test_graphs_and_transforms_give_plain_gradients():
    def loss(w):
        return embedding(tg, w, sparse=True).pow(2).sum() + bags(tg, w, sparse=True).pow(2).sum()

    def plain(w):
        return embedding(tg, w).pow(2).sum() + bags(tg, w).pow(2).sum()

    w = table().detach()
    found = tg.func.grad(plain)(w)
    np.testing.assert_allclose(tg.func.grad(loss)(w).to_dense().numpy(), found.numpy(), 1e-13)
    each = tg.func.vmap(tg.func.grad(loss))(tg.stack([w, w * 2]))
    np.testing.assert_allclose(each[0].numpy(), found.numpy(), 1e-13)

    def step(start):
        (grad,) = tg.autograd.grad(loss(start), start)
        return grad

    traced, start = tg.jit.trace(step, (w.clone().requires_grad_(),)), w.clone().requires_grad_()
    np.testing.assert_allclose(traced(start).numpy(), found.numpy(), 1e-13)
    compiled = tg.compile(loss)
    compiled(start).backward()
    assert not start.grad.is_sparse
    np.testing.assert_allclose(start.grad.numpy(), found.numpy(), 1e-13)


def test_modules():
    for layer in (nn.Embedding(5, 3, padding_idx=0, sparse=True), nn.EmbeddingBag(5, 3, mode="sum", sparse=True)):
        layer(tg.tensor([[1, 2], [0, 2]])).sum().backward()
        assert layer.sparse and layer.weight.grad.is_sparse
        assert layer.weight.grad.to_dense()[2].tolist() == [2.0] * 3
        tg.optim.SparseAdam(layer.parameters()).step()
    assert nn.Embedding.from_pretrained(tg.ones(3, 2), sparse=True).sparse


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"])
def test_optimizers_that_read_every_element_refuse(name):
    w = nn.Parameter(table().detach())
    optimizer = getattr(tg.optim, name)([w])
    w.grad = tg.ones(4, 3, dtype=tg.float64)
    optimizer.step()
    before = w.detach().clone()
    w.grad = None
    embedding(tg, w, sparse=True).sum().backward()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        optimizer.step()
    assert w.equal(before)


def test_refusals():
    w = table()
    for made in (embedding, bags):
        with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
            made(tg, w, scale_grad_by_freq=True, sparse=True).sum().backward()
    with pytest.raises(ValueError, match="max mode does not support sparse weights"):
        bags(tg, w, mode="max", sparse=True)
    embedding(tg, w, sparse=True).sum().backward()
    grad = w.grad
    with pytest.raises(RuntimeError, match=r"add\(sparse, dense\) is not supported"):
        grad.add_(tg.ones(4, 3, dtype=tg.float64))
    with pytest.raises(RuntimeError, match=r"expected a sparse tensor of self's size \[3, 3\], but got \[4, 3\]"):
        tg.ones(3, 3, dtype=tg.float64).add_(grad)
    with pytest.raises(NotImplementedError, match="written to with numbers only"):
        grad.mul_(tg.ones(4, 3, dtype=tg.float64))
    with pytest.raises(RuntimeError, match="zero must lie within the range"):
        grad.clamp_(1.0, 2.0)
    with pytest.raises(NotImplementedError, match="only that of all elements"):
        tg.linalg.vector_norm(grad, 2, 0)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        tg.optim.SparseAdam([parameter := nn.Parameter(tg.ones(2))]) and setattr(parameter, "grad", tg.ones(2))
        optimizer = tg.optim.SparseAdam([parameter])
        optimizer.step()


def test_what_is_written_in_place():
    for name, args in (
        ("mul_", (2,)),
        ("div_", (2,)),
        ("neg_", ()),
        ("abs_", ()),
        ("square_", ()),
        ("clamp_", (-0.5, 0.5)),
    ):
        made = tg.sparse_coo_tensor([[1, 0, 1]], [[1.0, 2.0], [-3.0, 1.0], [1.0, -1.0]], (3, 2))
        whole = made.to_dense()
        assert getattr(made, name)(*args) is made
        assert made.to_dense().equal(getattr(whole, name)(*args)), name
    a, b = (tg.sparse_coo_tensor([[1, 0]], [[1.0, 2.0], [k, 1.0]], (3, 2)) for k in (1.0, 2.0))
    total = a.to_dense() - b.to_dense() * 3
    assert a.sub_(b, alpha=3) is a and a.to_dense().equal(total)
    kept, more = a.coalesce().clone(), b.coalesce()
    assert (kept + more).is_coalesced() and (kept + more)._nnz() == 2 and not (a + b).is_coalesced()
    assert kept.add_(more) is kept and kept.is_coalesced() and kept.to_dense().equal(a.to_dense() + b.to_dense())
    plain = tg.zeros(3, 2)
    assert plain.add_(b, alpha=2) is plain and plain.equal(b.to_dense() * 2)
    plain -= tg.sparse_coo_tensor([[1, 0], [1, 1]], [1.0, 2.0], (3, 2))
    assert plain.equal(b.to_dense() * 2 - tg.tensor([[0.0, 2.0], [0.0, 1.0], [0.0, 0.0]]))
    fresh = b.new(b._indices(), b._values() * 2, b.size())
    assert fresh.is_sparse and fresh.to_dense().equal(b.to_dense() * 2) and b.new(2, 3).shape == (2, 3)


def test_a_gradient_keeps_its_places_while_the_index_is_used_again():
    weight, index = tg.zeros(4, 3, requires_grad=True), tg.tensor([0, 1])
    for k in range(3):
        index.fill_(k)
        F.embedding(index, weight, sparse=True).sum().backward()
    assert weight.grad.to_dense().sum(1).tolist() == [6, 6, 6, 0]


def test_the_first_gradient_keeps_its_history():
    weight, index = tg.rand(4, 3, requires_grad=True), tg.tensor([0, 2])
    (F.embedding(index, weight, sparse=True) ** 3).sum().backward(create_graph=True)
    first = weight.grad
    assert first.requires_grad and first.data.is_sparse and not first.data.requires_grad
    (second,) = tg.autograd.grad(first.to_dense().sum(), weight)
    assert tg.allclose(second.to_dense()[index], 6 * weight[index])


def test_scalers_take_sparse_gradients():
    weight = tg.ones(3, 2, requires_grad=True)
    scaler, optimizer = tg.amp.GradScaler("cpu", init_scale=4.0), tg.optim.SGD([weight], 0.5)
    scaler.scale(F.embedding(tg.tensor([0]), weight, sparse=True).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [[0.5, 0.5], [1, 1], [1, 1]]


def test_gather_of_one_element_of_a_vector():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    tg.gather(x, 0, tg.tensor(1), sparse_grad=True).backward()
    assert x.grad.to_dense().tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_anomalies_are_looked_for_in_sparse_gradients():
    weight = tg.ones(3, 2, requires_grad=True)
    with tg.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
        F.embedding(tg.tensor([0]), weight, sparse=True).mul(float("nan")).sum().backward()
    with tg.autograd.detect_anomaly():
        F.embedding(tg.tensor([0]), weight, sparse=True).sum().backward()
    assert weight.grad._values().tolist() == [[1, 1]]


def test_gradients_under_autocast_are_sparse():
    weight = tg.ones(3, 2, requires_grad=True)
    with tg.autocast("cpu"):
        F.embedding(tg.tensor([0]), weight, sparse=True).sum().backward()
    assert weight.grad.is_sparse and weight.grad.dtype == tg.float32
