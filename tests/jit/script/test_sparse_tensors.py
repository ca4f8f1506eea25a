"""Sparse tensors in script: what they are made of is asked for as in eager mode."""

import pytest

import tinygrad_ext as tg


def test_parts_of_sparse_tensors_are_read():
    @tg.jit.script
    def rows(x: tg.Tensor):
        assert x.layout == tg.sparse_csr
        return x.crow_indices(), x.col_indices(), x.values() * 2

    @tg.jit.script
    def count(x: tg.Tensor):
        if not x.is_coalesced():
            x = x.coalesce()
        return x.indices(), x._nnz() * x.sparse_dim() + x.dense_dim()

    dense = tg.tensor([[1.0, 0], [3, 4]])
    assert [part.tolist() for part in rows(dense.to_sparse_csr())] == [[0, 1, 3], [0, 0, 1], [2, 6, 8]]
    places, number = count(tg.sparse_coo_tensor([[1, 0, 1], [0, 1, 0]], [1.0, 2, 3]))
    assert places.tolist() == [[0, 1], [1, 0]] and number == 4
    with pytest.raises(RuntimeError, match="indices expected sparse coordinate tensor layout but got Strided"):
        tg.jit.script(_places)(dense)


def _places(x: tg.Tensor):
    return x.indices()


def test_sparse_tensors_are_made():
    @tg.jit.script
    def made(places: tg.Tensor, values: tg.Tensor):
        rows = int(places.max()) + 1
        x = tg.sparse_coo_tensor(indices=places, values=values, size=(rows, 2), dtype=tg.float64)
        return x, x.coalesce().to_sparse_csr(), x.to_dense() + x.to_dense(dtype=tg.float64)

    @tg.jit.script
    def others(dense: tg.Tensor):
        layout = tg.sparse_csc
        rows = tg.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 3.0], (2, 2))
        return dense.to_sparse(), dense.to_sparse(1), dense.to_sparse(layout=layout), dense.to_dense(), rows

    x, rows, dense = made(tg.tensor([[0, 1], [1, 0]]), tg.tensor([2.0, 3.0]))
    assert (x.layout, rows.layout, dense.layout) == (tg.sparse_coo, tg.sparse_csr, tg.strided)
    assert x.to_dense().tolist() == rows.to_dense().tolist() == [[0, 2], [3, 0]] and dense.tolist() == [[0, 4], [6, 0]]
    elements, whole_rows, columns, same, given = others(tg.tensor([[0.0, 2], [3, 0]]))
    assert (elements.sparse_dim(), whole_rows.sparse_dim(), columns.layout) == (2, 1, tg.sparse_csc)
    assert [t.to_dense().tolist() for t in (elements, whole_rows, columns, same, given)] == [[[0, 2], [3, 0]]] * 5


def test_gradients_go_through_sparse_tensors_that_script_makes():
    @tg.jit.script
    def product(places: tg.Tensor, values: tg.Tensor, dense: tg.Tensor):
        return tg.sparse.mm(tg.sparse_coo_tensor(places, values, [2, 2]), dense)

    values = tg.tensor([2.0, 3.0], requires_grad=True)
    product(tg.tensor([[0, 1], [1, 0]]), values, tg.tensor([[1.0, 2], [3, 4]])).sum().backward()
    assert values.grad.tolist() == [7, 3]


def test_what_makes_a_sparse_tensor_fails_where_it_runs():
    @tg.jit.script
    def made(places: tg.Tensor, run: bool):
        return tg.sparse_coo_tensor(places, tg.ones(2), (2, 2)) if run else places

    places = tg.tensor([[0, 5], [1, 0]])
    assert made(places, False) is places
    with pytest.raises(RuntimeError, match="size is inconsistent with indices: for dim 0, size is 2 but found index 5"):
        made(places, True)


@pytest.mark.parametrize("call", ["values=x, vals=x", "x, x, indices=x", "x, x, x, x, x, x, x, x, x, x, x"])
def test_arguments_that_sparse_tensors_do_not_have_are_refused(call):
    with pytest.raises(RuntimeError, match=r"sparse_coo_tensor\(\) takes indices, values, size"):
        tg.jit.CompilationUnit(f"def f(x: Tensor):\n    return torch.sparse_coo_tensor({call})")
