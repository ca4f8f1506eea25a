"""Names that only PyTorch's top level has: what they draw and write, beside their neighbours."""

import pytest

import tinygrad_ext as tg

X = tg.arange(24.0).reshape(2, 3, 4)


def test_native_dropout_draws_as_dropout_does_and_tells_what_it_kept():
    tg.manual_seed(0)
    found, kept = tg.native_dropout(X + 1, 0.3, True)
    tg.manual_seed(0)
    assert found.equal(tg.dropout(X + 1, 0.3, True)) and kept.dtype == tg.bool and kept.equal(found != 0)
    tg.manual_seed(0)
    assert tg.native_dropout(X, 0.3, None)[1].equal(kept)
    x = X.clone().requires_grad_()
    found, kept = tg.native_dropout(x, 0.5, True)
    assert not kept.requires_grad
    found.sum().backward()
    assert x.grad.equal(kept * 2.0)
    assert tg.native_dropout(tg.full((3,), float("inf")), 0.5, False)[0].isinf().all()


def test_feature_dropout_drops_channels():
    tg.manual_seed(0)
    found = tg.feature_dropout(tg.ones(8, 16, 4), 0.5, True)
    assert {tuple(row) for row in found.flatten(0, 1).tolist()} == {(0.0,) * 4, (2.0,) * 4}
    x = tg.ones(8, 16, 4)
    tg.manual_seed(0)
    assert tg.feature_dropout_(x, 0.5, True) is x and x.equal(found)
    assert tg.feature_dropout(X, 0.5, False) is X


def test_maxima_of_windows_tell_their_places():
    values, places = tg.max_pool1d_with_indices(X, 2)
    assert values.equal(X[..., 1::2]) and places.tolist() == [[[1, 3]] * 3] * 2
    values, places = tg.adaptive_max_pool1d(X, 2)
    assert values.equal(X[..., 1::2]) and places.tolist() == [[[1, 3]] * 3] * 2


def test_embedding_renorm_writes_rows_in_place():
    weight = tg.full((3, 4), 2.0)
    assert tg.embedding_renorm_(weight, tg.tensor([0, 2, 0]), 1.0, 2.0) is weight
    assert weight[1].tolist() == [2] * 4 and weight[::2].norm(dim=1).tolist() == pytest.approx([1, 1])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        tg.embedding_renorm_(tg.ones(2, 2, requires_grad=True), tg.tensor([0]), 1.0, 2.0)


def test_native_norm_is_norm_of_sparse_tensors_too():
    for x in (X, X.to_sparse()):
        assert tg.native_norm(x).equal(X.norm()) and tg.native_norm(x, 1).equal(X.norm(1))
        assert tg.native_norm(x, None, (0, 1, 2), False, None).equal(X.norm())


@pytest.mark.parametrize("norm", [tg.norm, tg.native_norm])
def test_norms_of_sparse_tensors_are_of_all_dimensions(norm):
    rest = (False, None) if norm is tg.native_norm else ()
    sparse = X.to_sparse()
    for dims in (0, (0, 1), -1):
        with pytest.raises(RuntimeError, match="only supports full reductions"):
            norm(sparse, 2, dims, *rest)
    with pytest.raises(RuntimeError, match="keepdim"):
        norm(sparse, 2, (0, 1, 2), True, *rest[1:])
    assert norm(sparse, 2, (0, -1, 1), *rest).equal(X.norm())


@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 2, 3, 4)])
def test_affine_grid_generator_is_affine_grid(size):
    theta = tg.arange(2.0 * (len(size) - 2) * (len(size) - 1)).reshape(2, len(size) - 2, -1)
    for align in (False, True):
        wanted = tg.nn.functional.affine_grid(theta, size, align_corners=align)
        assert tg.affine_grid_generator(theta, size, align).equal(wanted)
    with pytest.raises(RuntimeError, match="needs 4d"):
        tg.affine_grid_generator(theta, size[:3], True)
