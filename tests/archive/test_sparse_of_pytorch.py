"""Sparse tensors in PyTorch's files of both formats, whole and damaged."""

import io
import struct
import warnings

import pytest

import tinygrad_ext as tg

torch = pytest.importorskip("torch")
HELD = 77  # an index that stands in a file once


def _bytes(held, zipped):
    file = io.BytesIO()
    torch.save(held, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def _matrix(layout, dtype=torch.float32):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of layouts that PyTorch calls a beta
        dense = torch.zeros(3, 80, dtype=dtype)
        dense[0, HELD], dense[2, 1] = 5, 6
        return dense.to_sparse(layout=layout)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_sparse_tensors_are_read(layout, weights_only, zipped):
    plain = torch.arange(3.0)
    sparse = [_matrix(layout, dtype) for dtype in (torch.float32, torch.int64)]
    held = {"sparse": sparse, "again": sparse[0], "plain": plain}
    found = tg.load(io.BytesIO(_bytes(held, zipped)), weights_only=weights_only)
    for one, other in zip(found["sparse"], sparse):
        assert str(one.layout) == str(layout) and str(one.dtype) == str(other.dtype) and tuple(one.shape) == (3, 80)
        assert one.to_dense().tolist() == other.to_dense().tolist()
    assert found["again"] is found["sparse"][0] and found["plain"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_places_outside_of_the_tensor_are_refused(layout, zipped):
    matrix = _matrix(layout) if layout is not torch.sparse_csc else _matrix(torch.sparse_coo).t().to_sparse_csc()
    whole = _bytes([torch.ones(2), matrix], zipped)
    held = struct.pack("<q", HELD)
    assert whole.count(held) == 1
    for wrong in (80, -1, 1 << 40, -(1 << 63)):
        damaged = whole.replace(held, struct.pack("<q", wrong))
        with pytest.raises(RuntimeError, match="cannot be read"):
            tg.load(io.BytesIO(damaged))


def test_a_row_of_pickles_that_is_cut_off_is_refused():
    whole = _bytes([_matrix(torch.sparse_coo), torch.ones(2)], False)
    for cut in range(0, len(whole), 11):
        with pytest.raises(RuntimeError):
            tg.load(io.BytesIO(whole[:cut]))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("layout", [torch.sparse_bsr, torch.sparse_bsc])
def test_layouts_of_blocks_are_refused_by_name(layout, zipped):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks = torch.eye(4).to_sparse(layout=layout, blocksize=(2, 2))
    with pytest.raises(RuntimeError, match=f"the layout {layout}, of blocks, which is not here"):
        tg.load(io.BytesIO(_bytes(blocks, zipped)))
