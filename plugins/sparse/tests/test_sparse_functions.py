"""Each served function gives what it gives for the dense operand, and the gradients too; the rest says the way out."""

import subprocess
import sys

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn

pytest.importorskip("tgx_sparse", reason="tgx-sparse is not installed: pip install ./plugins/sparse")

from scipy import sparse
from tgx_sparse import Pattern, SparseTensor

DENSE = np.array([[0.0, 2.0, 0.0, -1.0], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.5, 0.0]])
OTHER = np.array([[1.0, 0.0, 0.0, 4.0], [0.0, 0.0, 0.0, 0.0], [2.0, 5.0, 0.0, 0.0]])
FORMATS = ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix", "lil_array", "dok_array", "bsr_array"]


def rand(*shape):
    return tg.rand(shape, dtype=tg.float64, requires_grad=True)


def dense_of(result):
    return result.to_dense() if isinstance(result, SparseTensor) else result


SERVED = {
    "matmul": lambda a: tg.matmul(a, rand(4, 2)),
    "matmul from the left": lambda a: tg.matmul(rand(2, 3), a),
    "matmul with a vector": lambda a: tg.matmul(a, rand(4)),
    "matmul with a vector from the left": lambda a: tg.matmul(rand(3), a),
    "matmul with a batch": lambda a: tg.matmul(a, rand(2, 5, 4, 3)),
    "matmul with a batch from the left": lambda a: tg.matmul(rand(2, 5, 3), a),
    "method matmul": lambda a: rand(2, 3).matmul(a),
    "operator @": lambda a: rand(2, 3) @ a,
    "mm": lambda a: tg.mm(a, rand(4, 2)),
    "method mm": lambda a: rand(2, 3).mm(a),
    "mv": lambda a: tg.mv(a, rand(4)),
    "linear": lambda a: nn.functional.linear(a, rand(2, 4), rand(2)),
    "add": lambda a: tg.add(a, rand(3, 4), alpha=2),
    "operator +": lambda a: rand(3, 4) + a,
    "reflected +": lambda a: a + rand(3, 4),
    "add of a row": lambda a: tg.add(a, rand(4)),
    "add of a stack": lambda a: tg.add(rand(2, 3, 4), a, alpha=3),
    "sub": lambda a: tg.sub(a, rand(3, 4), alpha=2),
    "operator -": lambda a: rand(3, 4) - a,
    "reflected -": lambda a: a - rand(3, 4),
    "mul": lambda a: tg.mul(a, rand(3, 4)),
    "operator *": lambda a: rand(3, 4) * a,
    "mul of a column": lambda a: tg.multiply(rand(3, 1), a),
    "mul by a number": lambda a: tg.mul(a, 3),
    "mul by a 0-d tensor": lambda a: tg.mul(a, rand()),
    "div": lambda a: tg.div(a, rand(3, 4) + 1),
    "div by a number": lambda a: tg.true_divide(a, 4.0),
    "sum": lambda a: tg.sum(a),
    "sum to rows": lambda a: tg.sum(a, 1),
    "sum to columns": lambda a: tg.sum(a, dim=-2, keepdim=True),
    "sum of both": lambda a: tg.sum(a, (0, 1), keepdim=True),
    "mean": lambda a: tg.mean(a),
    "mean of rows": lambda a: tg.mean(a, 1, keepdim=True),
    "t": lambda a: tg.t(a),
    "transpose": lambda a: tg.transpose(a, 0, -1),
    "neg": lambda a: tg.neg(a),
    "relu": lambda a: tg.relu(a),
    "functional relu": lambda a: nn.functional.relu(a),
    "sqrt of abs": lambda a: tg.sqrt(tg.abs(a)) if isinstance(a, SparseTensor) else tg.abs(a).sqrt(),
    "square": lambda a: tg.square(a),
    "tanh": lambda a: tg.tanh(a),
}


def run(call, operand):
    """(result, gradients of the tensors that the call made) for an operand."""
    tg.manual_seed(0)
    made, plain = [], globals()["rand"]
    globals()["rand"] = lambda *shape: made.append(plain(*shape)) or made[-1]
    try:
        result = dense_of(call(operand))
    finally:
        globals()["rand"] = plain
    if not made:
        return result, []
    weight = tg.linspace(-1, 1, result.numel(), dtype=tg.float64).reshape(result.shape)
    return result, tg.autograd.grad((result * weight).sum(), made)


@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "SparseTensor"])
def test_a_served_function_gives_what_it_gives_for_the_dense_matrix(name, kind):
    made = SparseTensor(sparse.csr_array(DENSE)) if kind == "SparseTensor" else getattr(sparse, kind)(DENSE)
    got, wanted = run(SERVED[name], made), run(SERVED[name], tg.tensor(DENSE))
    assert isinstance(got[0], tg.Tensor) and got[0].dtype is tg.float64
    for g, w in zip([got[0], *got[1]], [wanted[0], *wanted[1]]):
        assert g.shape == w.shape and tg.allclose(g, w)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_taken(kind):
    got = tg.mm(getattr(sparse, kind)(DENSE), tg.eye(4, dtype=tg.float64))
    assert got.tolist() == DENSE.tolist()


@pytest.mark.parametrize("name", [n for n in SERVED if "sqrt" not in n])
def test_gradients_by_the_values_are_those_of_the_dense_matrix(name):
    carrier = SparseTensor(sparse.csr_array(DENSE)).requires_grad_()
    dense = tg.tensor(DENSE, requires_grad=True)
    for operand in (carrier, dense):
        tg.manual_seed(1)
        result = dense_of(SERVED[name](operand))
        (result * tg.linspace(1, 2, result.numel(), dtype=tg.float64).reshape(result.shape)).sum().backward()
    rows, columns = np.nonzero(DENSE)
    assert tg.allclose(carrier.values.grad, dense.grad[rows.tolist(), columns.tolist()])


def test_second_derivatives_by_values_and_dense_operand():
    pattern, values = Pattern.of(sparse.csr_array(DENSE))
    values, other = tg.tensor(values, requires_grad=True), rand(4, 2)
    product = lambda values, other: (SparseTensor(pattern, values) @ other).tanh()
    assert tg.autograd.gradcheck(product, (values, other))
    assert tg.autograd.gradgradcheck(product, (values, other))


def test_two_sparse_matrices_add_and_multiply_with_gradients():
    one, two = (SparseTensor(sparse.csr_array(m)).requires_grad_() for m in (DENSE, OTHER))
    assert (one + two).to_dense().tolist() == (DENSE + OTHER).tolist()
    assert (one - two).to_dense().tolist() == (DENSE - OTHER).tolist()
    assert (one * two).to_dense().tolist() == (DENSE * OTHER).tolist()
    assert tg.add(one, sparse.csc_array(OTHER), alpha=2).to_dense().tolist() == (DENSE + 2 * OTHER).tolist()
    assert (one + one).pattern is one.pattern
    assert (-one / 2).to_dense().tolist() == (-DENSE / 2).tolist()
    ((one * two).sum() + (one - 3 * two).sum()).backward()
    assert one.values.grad.tolist() == [1, 5, 3, 1]
    assert two.values.grad.tolist() == [-3, -4, 0, -3]


def test_entries_stored_twice_are_added_up_once():
    twice = sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), (1, 3))
    assert tg.square(twice).to_dense().tolist() == [[0, 9, 0]]
    assert twice.data.tolist() == [1, 2]


def test_arrays_without_entries_or_without_rows():
    for shape in ((3, 4), (0, 4), (3, 0)):
        array = sparse.csr_array(shape)
        assert tg.mm(array, tg.ones(shape[1], 2, dtype=tg.float64)).tolist() == [[0, 0]] * shape[0]
        assert tg.sum(array).item() == 0
        assert tg.sum(array, 0).shape == (shape[1],)


def test_a_scipy_array_is_a_constant_whose_memory_is_not_changed():
    array = sparse.csr_array(DENSE)
    array.data.flags.writeable = False
    result = array - rand(3, 4)
    result.sum().backward()
    assert (array.toarray() == DENSE).all()


def test_nn_linear_takes_sparse_features():
    layer = nn.Linear(4, 2).double()
    layer(sparse.csr_array(DENSE)).sum().backward()
    assert tg.allclose(layer.weight.grad, tg.tensor(DENSE).sum(0).expand(2, 4))


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda a: tg.ones(3, 4) / a, "div"),
        (lambda a: tg.matmul(a, sparse.csr_array(DENSE.T)), "matmul"),
        (lambda a: tg.add(a, 1), "add"),
        (lambda a: tg.div(a, 2, rounding_mode="floor"), "div"),
    ],
)
@pytest.mark.parametrize("carrier", [False, True])
def test_what_is_not_served_is_a_type_error_with_the_way_out(call, name, carrier):
    array = sparse.csr_array(DENSE)
    with pytest.raises(TypeError, match=rf"^{name}\(\).*\.toarray\(\).*\.to_dense\(\)"):
        call(SparseTensor(array) if carrier else array)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda a: tg.cat([tg.ones(3, 4), a]), "cat"),
        (lambda a: tg.exp(a), "exp"),
        (lambda a: tg.ones(3, 4).add_(a), "add_?"),
    ],
)
def test_a_function_that_serves_no_sparse_array_says_so(call, name):
    array = sparse.csr_array(DENSE)
    with pytest.raises(TypeError, match=rf"^{name}\(\).*\.toarray\(\).*\.to_dense\(\)"):
        call(SparseTensor(array))
    with pytest.raises(TypeError, match=rf"^{name}\(\).*csr_array\. The handler of tgx-sparse .* declined; convert"):
        call(array)


def test_shapes_that_do_not_fit_and_two_dtypes_are_refused():
    array = sparse.csr_array(DENSE)
    with pytest.raises(RuntimeError, match=r"cannot multiply input \[3, 4\] by other \[3, 2\]: 3 must equal 4"):
        tg.matmul(array, tg.ones(3, 2, dtype=tg.float64))
    with pytest.raises(RuntimeError, match=r"array.astype\('float32'\)"):
        tg.matmul(array, tg.ones(4, 2))
    with pytest.raises(RuntimeError, match=r"mul\(\): a tensor of shape \[2, 3, 4\] does not broadcast"):
        tg.mul(array, tg.ones(2, 3, 4))
    with pytest.raises(IndexError, match="Dimension out of range"):
        tg.sum(array, 2)
    with pytest.raises(ValueError, match="values must be a vector of 4"):
        SparseTensor(array, tg.ones(3))
    with pytest.raises(TypeError, match="expected a SciPy sparse array or a Pattern, got ndarray"):
        SparseTensor(DENSE)


def test_scipys_own_operators_come_first_and_know_no_gradients():
    array = sparse.csr_array(DENSE)
    assert type(array @ tg.ones(4, 2, dtype=tg.float64)) is np.ndarray
    with pytest.raises(RuntimeError, match="requires grad"):
        array @ rand(4, 2)
    assert isinstance(np.ones((2, 3)) @ SparseTensor(array), tg.Tensor)


def test_a_carrier_goes_back_to_scipy_without_a_copy():
    carrier = SparseTensor(sparse.csc_array(DENSE))
    back = carrier.to_scipy()
    assert (back.toarray() == DENSE).all()
    assert np.shares_memory(back.data, carrier.values.numpy())
    assert (carrier.T.to_scipy().toarray() == DENSE.T).all()
    assert repr(carrier).endswith("<pattern of 4 entries in 3 x 4>)")


def test_the_examples_of_docstrings_work():
    import doctest

    import tgx_sparse.tensor

    assert doctest.testmod(tgx_sparse.tensor) == (0, 4)


LOADED = """
import sys
import tinygrad_ext as tg
from tinygrad_ext import plugins
tg.ones(2, 2) @ tg.ones(2, 2)
assert "scipy" not in sys.modules and "tgx_sparse.functions" not in sys.modules
from scipy.sparse import csr_array
print(tg.mm(csr_array([[2.0]]), tg.ones(1, 1, dtype=tg.float64)).item(), plugins.info("sparse").state)
"""


def test_the_first_array_loads_it():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("2.0 active\n", 0), done.stderr
