"""Tensors of the layout sparse_coo: what they are, what functions make of them, gradients of their values, refusals."""

import copy
import pickle

import pytest

import tinygrad_ext as tg

PLACES, SIZE = [[0, 1, 1, 0], [1, 0, 0, 2]], (2, 3)


def make(T=tg, dtype="float64"):
    return T.sparse_coo_tensor(PLACES, [2.0, 3.0, 4.0, 5.0], SIZE, dtype=getattr(T, dtype))


def stacked(T):
    return T.stack([make(T).to_dense(), make(T).to_dense() * 2]).to_sparse()


CASES = {
    "to_dense": lambda T: make(T).to_dense(),
    "coalesce": lambda T: make(T).coalesce().values(),
    "coalesced_places": lambda T: make(T).coalesce().indices(),
    "matmul": lambda T: make(T) @ T.ones(3, 2, dtype=T.float64),
    "matmul_vector": lambda T: make(T).matmul(T.arange(3, dtype=T.float64)),
    "mm": lambda T: T.mm(make(T), T.arange(6, dtype=T.float64).reshape(3, 2)),
    "mm_of_the_room": lambda T: T.sparse.mm(make(T), T.ones(3, 2, dtype=T.float64)),
    "mm_from_the_left": lambda T: T.arange(4, dtype=T.float64).reshape(2, 2) @ make(T),
    "mm_sparse": lambda T: T.sparse.mm(make(T), make(T).t()).to_dense(),
    "addmm": lambda T: T.sparse.addmm(T.ones(2, 2, dtype=T.float64), make(T), T.ones(3, 2, dtype=T.float64), beta=2),
    "dsmm": lambda T: T.dsmm(make(T), T.ones(3, 2, dtype=T.float64)),
    "bmm": lambda T: T.bmm(stacked(T), T.arange(12, dtype=T.float64).reshape(2, 3, 2)),
    "add": lambda T: (make(T) + make(T)).to_dense(),
    "add_alpha": lambda T: T.add(make(T), make(T), alpha=3).to_dense(),
    "add_to_dense": lambda T: T.ones(SIZE, dtype=T.float64) + make(T),
    "sub": lambda T: (make(T) - make(T) * 3).to_dense(),
    "mul": lambda T: (2 * make(T)).to_dense(),
    "mul_dense": lambda T: (make(T).coalesce() * T.arange(6, dtype=T.float64).reshape(2, 3)).to_dense(),
    "mul_sparse": lambda T: (make(T) * make(T)).to_dense(),
    "div": lambda T: (make(T) / 2).to_dense(),
    "neg_abs": lambda T: (-make(T)).abs().to_dense(),
    "pow": lambda T: make(T).pow(2).to_dense(),
    "sum": lambda T: make(T).sum(),
    "sum_of_the_room": lambda T: T.sparse.sum(make(T), 0).to_dense(),
    "norm": lambda T: make(T).norm(),
    "t": lambda T: make(T).t().to_dense(),
    "mT": lambda T: stacked(T).mT.to_dense(),
    "getitem": lambda T: make(T)[1].to_dense(),
    "index_select": lambda T: make(T).index_select(1, T.tensor([0, 0])).to_dense(),
    "float": lambda T: make(T).float().to_dense(),
    "to_sparse": lambda T: T.eye(3).to_sparse().indices(),
    "to_sparse_rows": lambda T: T.eye(3).to_sparse(1).values(),
    "legacy": lambda T: T.sparse.FloatTensor(T.tensor(PLACES), T.ones(4), T.Size(SIZE)).to_dense(),
    "size_from_places": lambda T: T.sparse_coo_tensor([[0, 4]], [1.0, 2.0]).to_dense(),
    "empty": lambda T: T.sparse_coo_tensor((2, 2)).to_dense(),
    "dense_dims": lambda T: T.sparse_coo_tensor([[1, 1]], [[1.0, 2.0], [3.0, 4.0]], (2, 2)).to_dense(),
    "to_dense_of_dense": lambda T: T.ones(2).to_dense(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_results_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    ours, theirs = CASES[name](tg), CASES[name](torch)
    assert (str(ours.dtype), ours.tolist()) == (str(theirs.dtype), theirs.tolist())


def test_it_says_what_it_is():
    x = make()
    assert isinstance(x, tg.Tensor) and x.is_sparse and x.layout is tg.sparse_coo and x.device == tg.device("cpu")
    assert (x.shape, x.dim(), x.numel(), len(x)) == (SIZE, 2, 6, 2)
    assert (x.sparse_dim(), x.dense_dim(), x._nnz(), x.coalesce()._nnz()) == (2, 0, 4, 3)
    assert not x.is_coalesced() and x.coalesce().is_coalesced() and "nnz=4" in repr(x)
    assert isinstance(x, tg.sparse.DoubleTensor) and not isinstance(x, tg.sparse.FloatTensor)
    assert x.type() == "torch.sparse.DoubleTensor"


def test_gradients_reach_the_values():
    values = tg.tensor([2.0, 3.0, 4.0, 5.0], dtype=tg.float64, requires_grad=True)
    dense = tg.arange(6, dtype=tg.float64).reshape(3, 2).requires_grad_()

    def loss(values, dense):
        return (tg.sparse_coo_tensor(PLACES, values, SIZE).coalesce() * 2 @ dense).sin()

    assert tg.autograd.gradcheck(loss, (values, dense))
    assert tg.sparse_coo_tensor(PLACES, values, SIZE).requires_grad


class Product(tg.autograd.Function):
    @staticmethod
    def forward(ctx, sparse, dense):
        ctx.sparse = sparse
        return tg.dsmm(sparse, dense)

    @staticmethod
    def backward(ctx, grad):
        return None, tg.dsmm(ctx.sparse.mT, grad)


def test_a_function_takes_one():
    dense = tg.ones(3, 2, dtype=tg.float64, requires_grad=True)
    result = Product.apply(make(), dense)
    result.sum().backward()
    assert result.tolist() == [[7.0, 7.0], [7.0, 7.0]] and dense.grad[:, 0].tolist() == [7.0, 2.0, 5.0]


def test_copies_and_pickles_keep_the_parts():
    x = make().coalesce()
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), x.detach()):
        assert other.is_coalesced() and tg.equal(other, x) and other.is_sparse


REFUSED = [
    (lambda: make().indices(), RuntimeError, "uncoalesced"),
    (lambda: tg.sparse_coo_tensor([[0, 2]], [1.0, 1.0], (2,)), RuntimeError, "size is inconsistent with indices"),
    (lambda: tg.sparse_coo_tensor([[-1]], [1.0], (2,)), RuntimeError, "negative index"),
    (lambda: tg.sparse_coo_tensor([[0, 1]], [1.0], (2,)), RuntimeError, "number of values"),
    (lambda: tg.sparse_coo_tensor([[0]], [1.0], (2, 2)), RuntimeError, "number of dimensions"),
    (lambda: tg.sparse_coo_tensor([0], [1.0], (2,)), RuntimeError, "two dimensions"),
    (lambda: tg.sparse_coo_tensor([[0]], [[1.0]], (2, 2)), RuntimeError, "do not fit"),
    (lambda: make() @ tg.ones(2, 2, dtype=tg.float64), RuntimeError, "cannot multiply"),
    (lambda: make() + tg.eye(3).to_sparse(), RuntimeError, "one size"),
    (lambda: 1 / make(), NotImplementedError, "to_dense"),
    (lambda: make() ** 0, RuntimeError, "positive number"),
    (lambda: make() / tg.ones(SIZE), RuntimeError, "by a number"),
    (lambda: make().exp(), NotImplementedError, "to_dense"),
    (lambda: tg.eye(2).to_sparse(3), RuntimeError, "sparse_dim"),
    (lambda: tg.eye(2).to_sparse(blocksize=(1, 1)), NotImplementedError, "no layouts of blocks"),
    (lambda: tg.eye(2).to_sparse(1).transpose(0, 1), RuntimeError, "cannot be exchanged"),
]


@pytest.mark.parametrize("call, error, text", REFUSED)
def test_refusals_say_why(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_size_alone_makes_an_empty_tensor():
    for made in (tg.sparse_coo_tensor((2, 3)), tg.sparse_coo_tensor(size=(2, 3))):
        assert made.shape == (2, 3) and made._nnz() == 0
    with pytest.raises(TypeError, match="or a size"):
        tg.sparse_coo_tensor()


def test_a_copy_asks_for_a_gradient_as_its_original():
    x = make().requires_grad_()
    twin = copy.deepcopy(x)
    assert twin.requires_grad and twin._values().is_leaf and not copy.deepcopy(make()).requires_grad
    twin.to_dense().sum().backward()
    assert x._values().grad is None


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_a_sparse_leaf_has_the_gradient_of_its_values(layout):
    layout = getattr(tg, layout)
    dense = tg.tensor([[0.0, 0, 1], [0, 2, 0]])
    x, wide = dense.to_sparse(layout=layout).requires_grad_(), tg.ones(3, 2)
    assert x.grad is None
    for turn in (1, 2):
        (x @ wide).sum().backward()
        assert x.grad.layout is layout and tg.equal(x.grad.to_dense(), 2.0 * turn * (dense != 0))
    assert tg.equal(x.grad.values() if layout is not tg.sparse_coo else x.grad._values(), tg.full((2,), 4.0))
    x.grad = None
    assert x.grad is None and x._values().grad is None
    (x @ wide).sum().backward()
    x.grad = dense.to_sparse(layout=layout)
    if layout is tg.sparse_coo:
        (x @ wide).sum().backward()
        assert tg.equal(x.grad.to_dense(), dense + 2 * (dense != 0))


def test_a_sparse_gradient_can_be_assigned():
    x, grad = make().requires_grad_(), make()
    for tensor in (grad.to_dense().requires_grad_(), x):
        tensor.grad = grad
        assert tensor.grad.is_sparse and tg.equal(tensor.grad.to_dense(), grad.to_dense())
        tensor.grad = None
        assert tensor.grad is None
    for wrong, kind in ((grad.to_dense(), RuntimeError), (tg.ones(7, 2).to_sparse(), RuntimeError), (3, TypeError)):
        with pytest.raises(kind, match="assign"):
            x.grad = wrong
    with pytest.raises(
        RuntimeError, match="a gradient with dtype 'torch.float32' to a tensor with dtype 'torch.float64'"
    ):
        x.grad = grad.float()


def test_zeros_like_a_sparse_tensor_stores_nothing():
    x = make()
    zeros = tg.zeros_like(x)
    assert zeros.is_sparse and zeros.shape == x.shape and zeros._nnz() == 0 and zeros.dtype is x.dtype
    assert tg.zeros_like(x, dtype=tg.float64).dtype is tg.float64


@pytest.mark.parametrize("layout", [tg.sparse_coo, tg.sparse_csr])
def test_products_go_into_out(layout):
    a, b, out = tg.tensor([[0.0, 2], [3, 0]]).to_sparse(layout=layout), tg.tensor([[1.0], [2]]), tg.empty(2, 1)
    assert tg.matmul(a, b, out=out) is out and out.tolist() == [[4], [3]]
    with pytest.raises(RuntimeError, match="out"):
        tg.mm(a, b, out=tg.empty(2, 1, dtype=tg.int64))
    with pytest.raises(NotImplementedError, match=r"matmul\(\): out= is written for results and tensors"):
        tg.matmul(a, a, out=out)


@pytest.mark.parametrize("layout", [None, "sparse_coo", "sparse_csr", "sparse_csc"])
def test_a_matrix_of_diagonals(layout):
    layout = layout and getattr(tg, layout)
    rows = tg.arange(1.0, 10).reshape(3, 3).requires_grad_()
    found = tg.sparse.spdiags(rows, tg.tensor([0, -1, 2]), (3, 4), layout)
    assert found.layout is (layout or tg.sparse_coo) and found.to_dense().tolist() == [
        [1, 0, 9, 0],
        [4, 2, 0, 0],
        [0, 5, 3, 0],
    ]
    found.to_dense().sum().backward()
    assert rows.grad.tolist() == [[1, 1, 1], [1, 1, 0], [0, 0, 1]]
    assert tg.sparse.spdiags(rows[0], tg.tensor(1), (2, 2)).to_dense().tolist() == [[0, 2], [0, 0]]


@pytest.mark.parametrize(
    "change, told",
    [
        ({"offsets": [0, 0, 1]}, "duplicate values"),
        ({"offsets": [0, 1]}, "does not match the number of offsets"),
        ({"offsets": [0.0, 1, 2]}, "must have dtype Long"),
        ({"offsets": [[0, 1, 2]]}, "scalar or vector"),
        ({"diagonals": [[[1]]]}, "vector or matrix"),
        ({"shape": (3,)}, "must be 2d"),
        ({"layout": tg.strided}, "Only output layouts"),
    ],
)
def test_diagonals_that_fit_no_matrix_are_refused(change, told):
    given = {"diagonals": [[1, 2, 3]] * 3, "offsets": [0, 1, 2], "shape": (3, 3), **change}
    tensors = {k: tg.tensor(v) if isinstance(v, list) else v for k, v in given.items()}
    with pytest.raises(RuntimeError, match=told):
        tg.sparse.spdiags(**tensors)


def test_t_is_of_matrices():
    x = tg.zeros(2, 2, 2)
    x[0, 1, 1] = 1
    with pytest.raises(RuntimeError, match="<= 2 sparse and 0 dense dimensions, but got 3 sparse"):
        x.to_sparse().t()
    with pytest.raises(RuntimeError, match="but got 1 sparse and 2 dense"):
        x.to_sparse(1).t()
    assert tg.equal(x[0].to_sparse().t().to_dense(), x[0].t())
