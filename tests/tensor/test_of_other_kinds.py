"""Methods of sparse, quantized and pinned tensors, as plain ones answer them."""

import pytest

import tinygrad_ext as tg


def test_questions_of_sparse_tensors_are_answered_by_plain_ones():
    t = tg.zeros(2, 3)
    assert t.sparse_dim() == 0 and t.dense_dim() == 2 and t.to_sparse().coalesce().is_coalesced()
    for name, layout in {
        **dict.fromkeys(("coalesce", "is_coalesced", "indices"), "coordinate tensor"),
        "values": "tensor",
        **dict.fromkeys(("crow_indices", "col_indices"), "row compressed tensor"),
        **dict.fromkeys(("ccol_indices", "row_indices"), "column compressed tensor"),
    }.items():
        with pytest.raises(RuntimeError, match=f"{name} expected sparse {layout} layout but got Strided: to_sparse"):
            getattr(t, name)()


def test_methods_of_other_kinds_of_tensors_are_named_and_refused():
    t = tg.zeros(2, 3)
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        tg.Tensor.pin_memory(t)
    for name in ("_nnz", "_values", "qscheme", "int_repr", "to_mkldnn", "to_sparse_bsr", "record_stream"):
        with pytest.raises(NotImplementedError, match=rf"^{name}\(\): "):
            getattr(t, name)()
    assert not t.is_distributed() and not t._is_zerotensor() and t.const_data_ptr() == t.data_ptr()
    assert tg.equal(t.half().dequantize(), t) and t.half().dequantize().dtype is tg.float32


def test_the_same_view_of_the_same_memory_is_told():
    t = tg.zeros(2, 3)
    assert (
        t.is_set_to(t.view(2, 3)) and not t.is_set_to(t.t()) and not t.is_set_to(t[1:]) and not t.is_set_to(t.clone())
    )
    assert t.dim_order() == (0, 1) and t.t().dim_order() == (1, 0)
    assert tg.zeros(3).expand(2, 3).dim_order() == (0, 1) and tg.zeros(2, 1, 3).permute(2, 1, 0).dim_order() == (
        2,
        1,
        0,
    )


def test_a_sparse_tensor_says_which_elements_of_a_plain_one_are_wanted():
    dense = tg.arange(6.0).reshape(2, 3).requires_grad_()
    mask = tg.tensor([[1.0, 0, 0], [0, 0, 5]]).to_sparse()
    found = dense.sparse_mask(mask)
    assert found.is_coalesced() and found.to_dense().tolist() == [[0, 0, 0], [0, 0, 5]]
    found.to_dense().sum().backward()
    assert dense.grad.tolist() == [[1, 0, 0], [0, 0, 1]]
    for wrong, kind in ((tg.ones(2, 3), TypeError), (tg.ones(3, 2).to_sparse(), RuntimeError)):
        with pytest.raises(kind, match=r"sparse_mask\(\): "):
            dense.sparse_mask(wrong)


def test_dimensions_that_could_change_places_are_told_of():
    formats = [tg.contiguous_format, tg.channels_last]
    whole, single = tg.empty(2, 3, 5, 7), tg.empty(1, 2, 3, 4)
    for check in (True, False, formats, []):
        assert whole.dim_order(ambiguity_check=check) == (0, 1, 2, 3)
    last = whole.contiguous(memory_format=tg.channels_last)
    assert last.dim_order(True) == (0, 2, 3, 1) and single.dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    for t, check in ((single, True), (single, []), (tg.empty(2, 1, 1, 1), formats), (tg.zeros(1).expand(2, 3), True)):
        with pytest.raises(RuntimeError, match="does not have unique dim order"):
            t.dim_order(ambiguity_check=check)
    for bad in ("ILLEGAL", [1], None):
        with pytest.raises(TypeError, match="a bool or a list of memory formats"):
            whole.dim_order(ambiguity_check=bad)
