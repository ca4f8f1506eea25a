"""jacfwd and hessian: forward mode in one vmap, alone and around reverse mode."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.func import debug_unwrap, functionalize, grad, hessian, jacfwd, jacrev, vmap

X = tg.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=tg.float64)


def f(x):
    return (x.sin() * x.sum()).exp()


def tree(x, scale):
    return {"a": x["p"] * scale[0], "b": (x["p"].sum() * scale[0] ** 2, x["p"][:, 0])}


@pytest.mark.parametrize("chunk_size", [None, 1, 4])
def test_columns_and_rows_give_the_same_matrix(chunk_size):
    assert tg.allclose(jacfwd(f, chunk_size=chunk_size)(X), jacrev(f)(X))


def test_trees_of_inputs_and_outputs():
    given = {"p": X}, (tg.tensor(3.0, dtype=tg.float64),)
    rows, columns = jacrev(tree, argnums=(0, 1))(*given), jacfwd(tree, argnums=(0, 1))(*given)
    for one in (rows, columns):
        by_x, by_scale = one["b"][0]
        assert by_x["p"].tolist() == [[9.0] * 3] * 2 and by_scale[0].item() == pytest.approx(6 * X.sum().item())
    assert tg.equal(rows["a"][0]["p"], columns["a"][0]["p"])
    assert rows["b"][1][0]["p"].shape == (2, 2, 3)


def test_others_come_back_as_they_are():
    found, (value, word) = jacfwd(lambda x: (f(x), (x * 2, "word")), has_aux=True)(X)
    assert tg.equal(value, X * 2) and word == "word" and found.shape == (2, 3, 2, 3)


def test_hessians_are_symmetric_and_those_of_reverse_over_reverse():
    scalar = lambda x: f(x).sum()
    found = hessian(scalar)(X)
    assert tg.allclose(found, jacrev(jacrev(scalar))(X)) and tg.allclose(found, found.permute(2, 3, 0, 1))
    assert tg.allclose(found, jacfwd(jacfwd(scalar))(X)) and tg.allclose(found, jacrev(jacfwd(scalar))(X))


def test_hessians_of_each_sample():
    got = vmap(hessian(lambda x: (x**3).sum()))(X)
    assert tg.allclose(got, tg.diag_embed(6 * X))


def test_a_hessian_is_one_graph():
    traced = tg.jit.trace(hessian(lambda x: (x**3).sum()), (X[0],))
    assert tg.allclose(traced(X[1]), tg.diag_embed(6 * X[1]))


def test_what_is_behind_a_carried_value_can_be_looked_at():
    seen = []
    vmap(lambda x: seen.append(debug_unwrap(x)) or x)(X)
    assert seen[0] is X
    vmap(vmap(lambda x: seen.extend([debug_unwrap(x).dim(), debug_unwrap(x, recurse=False).dim()]) or x))(X)
    assert seen[1:] == [2, 1]
    with pytest.raises(ValueError, match="expected a tensor"):
        debug_unwrap(1)


def test_functionalize_changes_no_result():
    def g(x):
        y = x.clone()
        y[0].mul_(2)
        return y.sum()

    assert tg.equal(grad(functionalize(g))(X), grad(g)(X))
    with pytest.raises(RuntimeError, match="invalid argument for remove"):
        functionalize(g, remove="views")
