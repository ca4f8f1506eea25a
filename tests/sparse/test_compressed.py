"""Matrices of the layouts sparse_csr and sparse_csc: what functions make of them, gradients, refusals."""

import copy
import pickle

import pytest
import scipy.sparse

import tinygrad_ext as tg

DENSE = [[0.0, 2.0, 0.0], [3.0, 0.0, 4.0], [0.0, 0.0, 0.0], [0.0, 5.0, 6.0]]
LAYOUTS = ("csr", "csc")
NAMES = {"csr": ("crow_indices", "col_indices"), "csc": ("ccol_indices", "row_indices")}


def make(layout, T=tg):
    return getattr(T.tensor(DENSE, dtype=T.float64), f"to_sparse_{layout}")()


CASES = {
    "mm": lambda x, T: x @ T.ones(3, 2, dtype=T.float64),
    "mv": lambda x, T: x @ T.ones(3, dtype=T.float64),
    "mm_of_the_room": lambda x, T: T.sparse.mm(x, T.ones(3, 2, dtype=T.float64)),
    "mm_sparse": lambda x, T: x @ x.t(),
    "dense_first": lambda x, T: T.ones(2, 4, dtype=T.float64) @ x,
    "add": lambda x, T: x + x,
    "mul_number": lambda x, T: x * 3,
    "neg": lambda x, T: -x,
    "t": lambda x, T: x.t(),
    "transpose": lambda x, T: x.transpose(0, 1),
    "sum": lambda x, T: x.sum(),
    "float": lambda x, T: x.float(),
    "clone": lambda x, T: x.clone(),
    "to_sparse": lambda x, T: x.to_sparse(),
    "to_sparse_csr": lambda x, T: x.to_sparse_csr(),
    "to_sparse_csc": lambda x, T: x.to_sparse_csc(),
    "from_coo": lambda x, T: x.to_sparse_coo().to_sparse(layout=T.sparse_csc),
    "linear": lambda x, T: T.nn.functional.linear(x.float(), T.ones(2, 3)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CASES)
def test_results_are_pytorchs(name, layout):
    torch = pytest.importorskip("torch")
    ours, theirs = CASES[name](make(layout), tg), CASES[name](make(layout, torch), torch)
    assert (str(ours.dtype), str(ours.layout)) == (str(theirs.dtype), str(theirs.layout))
    assert ours.to_dense().tolist() == theirs.to_dense().tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin", "max", "min"])
def test_reductions_of_the_products_of_a_row_are_those_of_the_stored_ones(reduce):
    dense = tg.arange(-3.0, 3.0, dtype=tg.float64).reshape(3, 2)
    found = tg.sparse.mm(make("csr"), dense, reduce)
    of = {"sum": sum, "mean": lambda p: sum(p) / len(p), "max": max, "min": min}[reduce.removeprefix("a")]
    for row, stored in enumerate(DENSE):
        for column in range(2):
            products = [value * dense[k, column].item() for k, value in enumerate(stored) if value]
            assert found[row, column].item() == (of(products) if products else 0)
    with pytest.raises(ValueError, match="reduce must be 'sum', 'mean', 'amax' or 'amin', but got 'prod'"):
        tg.sparse.mm(make("csr"), dense, "prod")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reduce", ["mean", "amax", "amin"])
def test_reductions_of_no_products_keep_the_history(reduce):
    dense = tg.ones(3, 2, requires_grad=True)
    found = tg.sparse.mm(tg.zeros(2, 3).to_sparse_csr(), dense, reduce)
    assert found.tolist() == [[0, 0], [0, 0]] and found.requires_grad
    found.sum().backward()
    assert dense.grad.tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_are_scipys(layout):
    x, theirs = make(layout), getattr(scipy.sparse, f"{layout}_array")(DENSE)
    compressed, plain = (getattr(x, name)() for name in NAMES[layout])
    assert compressed.tolist() == theirs.indptr.tolist() and plain.tolist() == theirs.indices.tolist()
    assert x.values().tolist() == theirs.data.tolist() and x._nnz() == theirs.nnz
    made = getattr(tg, f"sparse_{layout}_tensor")(theirs.indptr, theirs.indices, theirs.data)
    assert made.dtype is tg.float64 and made.to_dense().tolist() == DENSE and made.layout is x.layout
    assert getattr(made, NAMES[layout][0])().dtype is tg.int32
    assert (x.shape, x.dim(), x.is_sparse, x.is_sparse_csr) == ((4, 3), 2, False, layout == "csr")
    assert NAMES[layout][0] in repr(x) and "nnz=5" in repr(x)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_have_further_dimensions(layout):
    values = tg.arange(6.0).reshape(3, 2)
    x = getattr(tg, f"sparse_{layout}_tensor")([0, 1, 3], [1, 0, 1], values)
    assert x.shape == (2, 2, 2) and x.dense_dim() == 1
    whole = x.to_dense()
    first = whole[0, 1] if layout == "csr" else whole[1, 0]
    assert first.tolist() == [0, 1]
    assert whole.sum(-1).count_nonzero() == 3 and x.t().to_dense().tolist() == whole.transpose(0, 1).tolist()
    assert x.to_sparse().to_sparse(layout=x.layout).values().tolist() == values.tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_reach_the_values(layout):
    x = make(layout)
    parts = [getattr(x, name)() for name in NAMES[layout]]
    values = x.values().clone().requires_grad_()
    dense = tg.arange(6, dtype=tg.float64).reshape(3, 2).requires_grad_()

    def loss(values, dense):
        return (tg.sparse_compressed_tensor(*parts, values, (4, 3), layout=x.layout) * 2 @ dense).sin()

    assert tg.autograd.gradcheck(loss, (values, dense))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_and_pickles_keep_the_parts(layout):
    x = make(layout)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), x.detach()):
        assert other.layout is x.layout and tg.equal(other, x) and other.values().tolist() == x.values().tolist()


REFUSED = [
    (lambda: make("csr").ccol_indices(), RuntimeError, "none of the layout torch.sparse_csr"),
    (lambda: make("csc").col_indices(), RuntimeError, "none of the layout torch.sparse_csc"),
    (lambda: make("csr").indices(), RuntimeError, "expected sparse coordinate tensor layout"),
    (lambda: tg.sparse_csr_tensor([0, 1], [0], [1.0], (2, 2)), RuntimeError, "one element more than size has"),
    (lambda: tg.sparse_csr_tensor([0, 1], [0], [1.0], (1,)), RuntimeError, "for the size"),
    (lambda: tg.sparse_csr_tensor([0, 2], [0], [1.0], (1, 2)), RuntimeError, "from 0 to the number of values 1"),
    (lambda: tg.sparse_csr_tensor([0, 2, 1], [0], [1.0], (2, 2)), RuntimeError, "must rise from 0"),
    (lambda: tg.sparse_csc_tensor([0, 1], [2], [1.0], (2, 1)), RuntimeError, "row_indices must lie between 0 and 1"),
    (lambda: tg.sparse_csr_tensor([0.0, 1.0], [0], [1.0], (1, 1)), RuntimeError, "must be int32 or int64"),
    (lambda: tg.sparse_csr_tensor([[0, 1]], [[0]], [[1.0]]), NotImplementedError, "expected two vectors"),
    (lambda: tg.sparse_compressed_tensor([0], [], [], layout=tg.sparse_bsr), RuntimeError, "layout must be sparse_csr"),
    (lambda: tg.eye(2).to_sparse(layout=tg.sparse_bsr), NotImplementedError, "sparse_bsr is not"),
    (lambda: tg.ones(2, 2, 2).to_sparse_csr(), NotImplementedError, "written for matrices"),
    (lambda: make("csr").exp(), NotImplementedError, "to_dense"),
]


@pytest.mark.parametrize("call, kind, text", REFUSED)
def test_what_is_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


class Graph(tg.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("adjacency", tg.eye(3).to_sparse())

    def forward(self, x):
        return tg.sparse.mm(self.adjacency, x)

    @tg.jit.export
    def doubled(self):
        return self.adjacency * 2


def test_ops_of_a_compiled_program_refuse_sparse_tensors_wherever_they_stand():
    def alone(x):
        return x * 2

    def listed(x: list[tg.Tensor]):
        return x[0] * 2

    def maybe(x: tg.Tensor | None):
        return tg.ones(1) if x is None else x * 2

    for x in (tg.eye(3).to_sparse(), tg.eye(3).to_sparse_csr()):
        for function, given in ((alone, x), (listed, [tg.ones(1), x]), (maybe, x)):
            with pytest.raises(RuntimeError, match="is or holds a sparse tensor"):
                tg.jit.script(function)(given)
    assert tg.jit.script(maybe)(None).item() == 1
    module = tg.jit.script(Graph())
    assert module(tg.ones(3, 2)).equal(tg.ones(3, 2))
    with pytest.raises(RuntimeError, match="'adjacency' is or holds a sparse tensor"):
        module.doubled()


def test_products_that_are_reduced_check_their_operands():
    c = tg.eye(2).to_sparse_csr()
    for other in (tg.ones(3, 2), tg.ones(1, 2), tg.ones(2), tg.ones(2, 2, dtype=tg.float64), c):
        with pytest.raises(RuntimeError, match=r"mm\(\)"):
            tg.sparse.mm(c, other, "mean")
    with pytest.raises(RuntimeError, match="takes a sparse matrix and a plain one"):
        tg.sparse.mm(tg.ones(2, 2), tg.ones(2, 2), "amax")


@pytest.mark.parametrize("layout", [tg.sparse_csr, tg.sparse_csc])
def test_nothing_is_left_after_zero_(layout):
    c = tg.eye(3).to_sparse(layout=layout)
    assert c.zero_() is c and c.layout is layout and c._nnz() == 0
    assert c.to_dense().equal(tg.zeros(3, 3)) and (c * 2).detach().to_dense().equal(tg.zeros(3, 3))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_swapping_asks_for_what_it_asks_of_a_plain_matrix(layout):
    x = make(layout)
    other = {"csr": tg.sparse_csc, "csc": tg.sparse_csr}[layout]
    assert x.transpose(0, -1).layout is x.transpose(dim0=0, dim1=1).layout is x.swapaxes(1, 0).layout is other
    assert x.transpose(1, -1) is x
    with pytest.raises(TypeError):
        x.transpose(0)
    with pytest.raises(TypeError):
        x.transpose(0, 1, 2)
    with pytest.raises(TypeError):
        x.t(1)
    with pytest.raises(IndexError, match="out of range"):
        x.transpose(0, 5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_indices_keep_their_dtype_in_the_other_layout(layout):
    x = make(layout)
    x = tg.sparse_compressed_tensor(*(i.int() for i in x._compressed[:2]), x.values(), x.shape, layout=x.layout)
    for turned in (x.to_sparse_csr(), x.to_sparse_csc(), x.t(), x.transpose(0, 1).to_sparse_csr()):
        assert [i.dtype for i in turned._compressed[:2]] == [tg.int32] * 2
    assert x.to_dense().tolist() == DENSE == x.to_sparse_csc().to_dense().tolist()
    assert x.to_sparse().indices().dtype is tg.int64


@pytest.mark.parametrize("layout", LAYOUTS)
def test_compressed_places_are_not_coalesced(layout):
    with pytest.raises(RuntimeError, match="coalesce expected sparse coordinate tensor layout"):
        make(layout).coalesce()
    with pytest.raises(
        RuntimeError, match="is_coalesced expected sparse coordinate tensor layout but got torch.sparse_cs"
    ):
        make(layout).is_coalesced()
    assert (make(layout) / 2).to_dense().tolist() == [[v / 2 for v in row] for row in DENSE]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_copy_asks_for_a_gradient_as_its_original(layout):
    assert copy.deepcopy(make(layout).requires_grad_()).requires_grad
    assert not copy.deepcopy(make(layout)).requires_grad


def test_script_reduces_products_by_a_word():
    def products(a, b):
        return tg.sparse.mm(a, b, "mean"), tg.sparse.mm(a, b, reduce="amax"), tg.sparse.mm(a, b)

    c = make("csr")
    x = tg.randn(c.shape[1], 2, dtype=tg.float64)
    assert all(p.equal(q) for p, q in zip(tg.jit.script(products)(c, x), products(c, x)))
