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
