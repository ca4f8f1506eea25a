"""Rules of softmax and the norms that the sweep over all ops cannot know."""

import math
import warnings

import pytest

import tinygrad_ext as tg
import tinygrad_ext.nn.functional as F
from tinygrad_ext.autograd import gradcheck, gradgradcheck


def close(a, b, tolerance=1e-6):
    assert a.shape == b.shape
    assert (a - b).abs().max().item() <= tolerance


def test_softmax_does_not_overflow_and_gives_nan_for_a_row_of_minus_infinity():
    rows = tg.tensor([[1e4, 1e4 - math.log(3)], [-math.inf, 0.0], [-math.inf, -math.inf]])
    got = tg.softmax(rows, 1).tolist()
    assert got[0] == pytest.approx([0.75, 0.25], abs=1e-4) and got[1] == [0.0, 1.0]
    assert all(math.isnan(v) for v in got[2])


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_softmax_without_dim_warns_and_chooses(function):
    for shape, dim in (((4,), 0), ((2, 3), 1), ((2, 3, 2), 0), ((2, 3, 2, 2), 1)):
        t = tg.randn(*shape)
        with pytest.warns(UserWarning, match="Implicit dimension choice"):
            got = function(t)
        close(got, function(t, dim))


def test_softmax_over_columns_equals_softmax_over_rows_of_the_transposed():
    t = tg.randn(300, 70)
    close(tg.softmax(t, 0), tg.softmax(t.t(), 1).t())


def test_softmax_converts_first_and_its_gradient_comes_back_in_the_inputs_dtype():
    t = tg.tensor([[1, 2], [3, 4]])
    assert F.softmax(t, 1, dtype=tg.float64).dtype == tg.float64
    leaf = tg.randn(2, 3, requires_grad=True)
    tg.softmax(leaf, 1, dtype=tg.float64).sum().backward()
    assert leaf.grad.dtype == tg.float32
    with pytest.raises(NotImplementedError, match="\"softmax\" not implemented for 'Long'"):
        tg.softmax(t, 1)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm"])
def test_threads_do_not_change_a_bit(name):
    t, w = tg.randn(700, 300, requires_grad=True), tg.randn(300, requires_grad=True)

    def run():
        t.grad = w.grad = None
        out = F.layer_norm(t, (300,), w, w) if name == "layer_norm" else getattr(tg, name)(t, 1)
        (out * out).sum().backward()
        return [out.detach(), t.grad] + ([w.grad] if w.grad is not None else [])

    before = tg.get_num_threads()
    try:
        tg.set_num_threads(1)
        one = run()
        tg.set_num_threads(2)
        assert all((a == b).all().item() for a, b in zip(one, run()))
    finally:
        tg.set_num_threads(before)


def test_a_large_mean_does_not_spoil_the_variance():
    t = tg.randn(4, 5000) + 1e4
    out = F.layer_norm(t, (5000,))
    assert out.mean(1).abs().max().item() < 2e-3 and (out.var(1) - 1).abs().max().item() < 1e-2


@pytest.mark.parametrize(
    ("shape", "weight", "text"),
    [
        ((3,), None, "Given normalized_shape=[3], expected input with shape [*, 3]"),
        ((4,), (3,), "Expected weight to be of same shape as normalized_shape"),
        ((), None, "at least 1-dimensional"),
    ],
)
def test_layer_norm_refuses_shapes_that_do_not_fit(shape, weight, text):
    with pytest.raises(RuntimeError) as refusal:
        F.layer_norm(tg.randn(2, 4), shape, weight and tg.randn(*weight))
    assert text in str(refusal.value)


def test_batch_norm_moves_the_running_statistics_in_place():
    t = tg.randn(6, 3, 2)
    mean, var = tg.zeros(3), tg.ones(3)
    F.batch_norm(t, mean, var, training=True, momentum=0.25)
    close(mean, 0.25 * t.mean((0, 2)))
    close(var, 0.75 + 0.25 * t.transpose(0, 1).reshape(3, -1).var(1))
    assert mean._version == 1 and var._version == 1
    F.batch_norm(t, mean, var)
    assert mean._version == 1


def test_running_statistics_are_counted_as_written_and_refused_when_they_must_not_be():
    x, mean, var = tg.ones(4, 3), tg.zeros(3), tg.ones(3)
    F.batch_norm(x, mean, var, training=True)
    assert (mean._version, var._version) == (1, 1)
    F.batch_norm(x, mean, var)
    assert (mean._version, var._version) == (1, 1)
    before = mean.tolist()
    with pytest.raises(RuntimeError, match=r"more than one element.*running_var"):
        tg.native_batch_norm(x, None, None, mean, tg.ones(1).expand(3), True, 0.1, 1e-5)
    assert mean.tolist() == before


def test_batch_norm_works_on_strided_running_statistics():
    t = tg.randn(6, 3)
    wide = tg.zeros(3, 2)
    F.batch_norm(t, wide[:, 1], None, training=True, momentum=1.0)
    close(wide[:, 1], t.mean(0))
    assert wide[:, 0].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: F.batch_norm(tg.randn(1, 3), None, None, training=True),
            ValueError,
            "Expected more than 1 value per channel",
        ),
        (
            lambda: F.batch_norm(tg.randn(2, 3), None, None),
            RuntimeError,
            "running_mean must be defined in evaluation mode",
        ),
        (
            lambda: F.batch_norm(tg.randn(2, 3), tg.ones(2), tg.ones(3)),
            RuntimeError,
            "running_mean should contain 3 elements not 2",
        ),
        (
            lambda: F.batch_norm(tg.randn(2, 3), tg.ones(3), tg.ones(3), tg.ones(2)),
            RuntimeError,
            "weight should contain 3",
        ),
        (lambda: F.batch_norm(tg.randn(2, 3), tg.ones(3).double(), tg.ones(3)), RuntimeError, "mixed dtype"),
        (
            lambda: F.batch_norm(tg.ones(2, 3).long(), tg.ones(3), tg.ones(3)),
            NotImplementedError,
            "not implemented for 'Long'",
        ),
        (lambda: F.batch_norm(tg.randn(3), None, None, training=True), RuntimeError, "at least 2 dimensions"),
        (lambda: F.group_norm(tg.randn(2, 6), 4), RuntimeError, "to be divisible by num_groups"),
        (lambda: F.instance_norm(tg.randn(2, 3, 1)), ValueError, "Expected more than 1 spatial element"),
        (lambda: F.rms_norm(tg.randn(2, 3), (2,)), RuntimeError, "Given normalized_shape=[2]"),
    ],
)
def test_norms_say_what_is_wrong(call, error, text):
    with pytest.raises(error) as refusal:
        call()
    assert text in str(refusal.value)


def test_batch_norm_of_an_empty_batch_is_empty_and_leaves_the_statistics_alone():
    mean, var = tg.zeros(3), tg.ones(3)
    assert F.batch_norm(tg.randn(0, 3), mean, var, training=True).shape == (0, 3)
    assert mean.tolist() == [0.0] * 3 and var.tolist() == [1.0] * 3


@pytest.mark.parametrize("training", [True, False])
def test_both_derivatives_of_batch_norm(training):
    t, w, b = (tg.randn(*s, dtype=tg.float64, requires_grad=True) for s in ((3, 2, 2), (2,), (2,)))
    mean, var = tg.randn(2, dtype=tg.float64), tg.rand(2, dtype=tg.float64) + 0.5

    def run(t, w, b):
        return F.batch_norm(t, None if training else mean, None if training else var, w, b, training)

    assert gradcheck(run, (t, w, b)) and gradgradcheck(run, (t, w, b))


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize(
    "norm",
    [
        lambda t, w, b: F.batch_norm(t, None, None, w, b, training=True),
        lambda t, w, b: F.batch_norm(t, tg.zeros(4), tg.ones(4), w, b),
        lambda t, w, b: F.instance_norm(t, None, None, w, b),
        lambda t, w, b: F.group_norm(t, 2, w, b),
        lambda t, w, b: F.layer_norm(t.mT, (4,), w, b).mT,
    ],
    ids=["batch_norm", "fixed batch_norm", "instance_norm", "group_norm", "layer_norm"],
)
def test_the_gradient_of_some_operands_has_a_derivative_by_what_comes_in(norm, wanted):
    operands = [tg.randn(*shape, requires_grad=True) for shape in ((3, 4, 5), (4,), (4,))]
    out = norm(*operands)
    incoming = tg.randn(out.shape, requires_grad=True)
    some = [operands[i] for i in wanted]
    along = [tg.randn(t.shape) for t in some]
    grads = tg.autograd.grad(out, some, incoming, create_graph=True)
    (found,) = tg.autograd.grad(grads, [incoming], along)
    assert found.shape == out.shape
    inner = sum((g * a).sum() for g, a in zip(grads, along))
    close((found * incoming).sum(), inner, 1e-3)  # the gradients are linear in what comes in


def test_instance_norm_is_batch_norm_of_each_example():
    t = tg.randn(2, 3, 5)
    mean, var = tg.zeros(3), tg.ones(3)
    got = F.instance_norm(t, mean, var, momentum=0.5)
    close(got, F.group_norm(t, 3))
    close(mean, 0.5 * t.mean(2).mean(0))


def test_dropout_keeps_its_input_when_there_is_nothing_to_drop():
    t = tg.ones(4)
    assert F.dropout(t, 0.5, training=False) is t and F.dropout(t, 0.0) is t
    assert F.dropout(t, 1.0).tolist() == [0.0] * 4


def test_dropout_scales_what_it_keeps_and_follows_the_seed():
    tg.manual_seed(3)
    first = F.dropout(tg.ones(1000), 0.2)
    assert set(first.tolist()) == {0.0, 1.25} and 0.7 < (first > 0).double().mean().item() < 0.9
    tg.manual_seed(3)
    t = tg.ones(1000)
    assert F.dropout(t, 0.2, inplace=True) is t and (t == first).all().item()


def test_dropout_of_channels_takes_other_ranks_with_a_warning():
    for shape in ((8, 16, 3, 3, 2), (8, 16)):
        with pytest.warns(UserWarning, match=rf"dropout2d: Received a {len(shape)}-D input to dropout2d.*\(N, C, \*\)"):
            made = F.dropout2d(tg.ones(shape)).reshape(8, 16, -1)
        assert set(made.amax(-1).unique().tolist()) == {0.0, 2.0} and (made == made[..., :1]).all()
    for shape in ((64, 3, 2), (64, 3), (64,), (64, 2, 1, 2, 1, 2)):  # one example, as whatever has not five
        with pytest.warns(UserWarning, match=rf"dropout3d: Received a {len(shape)}-D input to dropout3d.* \(C, \*\)"):
            made = F.dropout3d(tg.ones(shape)).reshape(64, -1)
        assert set(made.unique().tolist()) == {0.0, 2.0} and (made == made[:, :1]).all()
    with pytest.raises(RuntimeError, match="dropout1d: Expected 2D or 3D input, but received a 4D input"):
        F.dropout1d(tg.ones(2, 3, 4, 5))


@pytest.mark.parametrize("name", ["dropout2d", "dropout3d"])
def test_dropout_of_channels_that_drops_nothing_takes_any_rank_and_says_where_it_was_called(name):
    for x in (tg.tensor(3.0), tg.ones(3), tg.ones(2, 3)):
        for given in ({"training": False}, {"p": 0.0}):
            with pytest.warns(UserWarning, match=f"Received a {x.dim()}-D input to {name}") as caught:
                assert tg.equal(getattr(F, name)(x, **given), x)
            assert [w.filename for w in caught] == [__file__]
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="There are no channels to drop"):
        getattr(F, name)(tg.tensor(3.0))


def test_dropout2d_of_one_dimension_has_no_channels_to_drop():
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="There are no channels to drop"):
        F.dropout2d(tg.ones(3))


def test_dropout2d_of_three_dimensions_warns_where_it_was_called():
    with pytest.warns(UserWarning, match="dropout2d: Received a 3-D input") as caught:
        F.dropout2d(tg.ones(2, 3, 4))
    assert [w.filename for w in caught] == [__file__]


def test_dropout_of_channels_drops_whole_ones():
    tg.manual_seed(0)
    sums = F.dropout2d(tg.ones(8, 16, 3, 3), 0.5).sum((2, 3))
    assert set(sums.flatten().tolist()) == {0.0, 18.0}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.dropout(tg.ones(2), 1.5), ValueError, "has to be between 0 and 1, but got 1.5"),
        (lambda: tg.dropout(tg.ones(2), -0.5, True), RuntimeError, "has to be between 0 and 1, but got -0.5"),
        (lambda: F.dropout(tg.ones(2).long(), 0.5), RuntimeError, "can't be cast to the desired output type"),
        (lambda: F.dropout1d(tg.ones(2)), RuntimeError, "Expected 2D or 3D input"),
    ],
)
def test_dropout_says_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_plain_calls_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.softmax(tg.randn(2, 2), 1)
        F.mse_loss(tg.randn(2), tg.randn(2))
        F.cross_entropy(tg.randn(2, 2), tg.tensor([0, 1]))


def test_batch_norm_under_names_between_public_and_private():
    tg.manual_seed(0)
    x, mean, var = tg.randn(5, 3), tg.zeros(3), tg.ones(3)
    want = tg.native_batch_norm(x, None, None, mean.clone(), var.clone(), True, 0.1, 1e-5)
    for found in (
        tg._native_batch_norm_legit(x, None, None, mean.clone(), var.clone(), True, 0.1, 1e-5),
        tg._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5),
        tg.ops.aten._batch_norm_with_update(x, None, None, mean, var, 0.1, 1e-5),
    ):
        assert all(f.equal(w) for f, w in zip(found, want))
    tg.testing.assert_close(mean, 0.1 * x.mean(0))
    assert tg._native_batch_norm_legit(x, None, None, mean, var, False, 0.1, 1e-5)[1].shape == (0,)


def test_sizes_and_scales_of_a_smooth_upsampling_need_not_fit():
    x, smooth = tg.arange(20.0).reshape(1, 1, 4, 5), tg.ops.aten._upsample_bilinear2d_aa
    want = tg.nn.functional.interpolate(x, (2, 3), mode="bilinear", antialias=True)
    assert smooth(x, (2, 3), False).equal(want) and smooth.vec(x, (2, 3), False, None).equal(want)
    assert smooth(x, (2, 3), False, 1.7, 0.9).shape == (1, 1, 2, 3)
    with pytest.raises(RuntimeError, match="Expected 4D images"):
        smooth(x[0], (2, 3), False)


KINDS = {
    "an int and a float": (tg.int8, tg.float32, tg.float32),
    "a half and a double": (tg.float16, tg.float64, tg.float64),
    "a double and a bool": (tg.float64, tg.bool, tg.float64),
}


@pytest.mark.parametrize("case", KINDS)
def test_cosines_are_of_the_common_dtype(case):
    first, second, wanted = KINDS[case]
    found = tg.nn.functional.cosine_similarity(tg.tensor([3, 4], dtype=first), tg.tensor([1, 1], dtype=second), dim=0)
    assert found.dtype == wanted and found.item() == pytest.approx(7 / 50**0.5)


@pytest.mark.parametrize("shape", [(0, 6, 2), (2, 6, 1), (2, 6), (0, 6, 2, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_group_norm_has_second_gradients_of_no_examples(shape, weighted):
    x = tg.linspace(0, 1, math.prod(shape), dtype=tg.float64).reshape(shape).requires_grad_()
    weight = tg.linspace(1, 2, 6, dtype=tg.float64).requires_grad_() if weighted else None
    inputs = (x, weight, weight * 2) if weighted else (x,)
    assert tg.autograd.gradgradcheck(lambda x, w=None, b=None: tg.nn.functional.group_norm(x, 2, w, b), inputs)


def test_group_norm_has_second_gradients_of_no_places():
    x, w = tg.ones(1, 2, 0, requires_grad=True), tg.ones(2, requires_grad=True)
    y = tg.nn.functional.group_norm(x, 1, w, w)
    first = tg.autograd.grad(y.sum(), (x, w), create_graph=True)
    second = tg.autograd.grad(first[0].sum() + first[1].sum(), (x, w), allow_unused=True)
    assert [tuple(g.shape) for g in (*first, *second) if g is not None] == [(1, 2, 0), (2,), (1, 2, 0), (2,)]


def test_group_norm_has_tangents_of_no_examples():
    x = tg.ones(0, 4, 3)
    back = lambda x: tg.func.grad(lambda x: tg.nn.functional.group_norm(x, 2).sum())(x)
    assert tg.func.jvp(back, (x,), (x,))[1].shape == (0, 4, 3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("inner", [(), (1,), (2,), (3, 3), (4, 8), (33,), (600,)])
def test_groups_of_channels_of_few_elements(inner, weighted):
    """Channels side by side, or one by one: 13 and 16 of a group, and one."""
    generator = tg.Generator().manual_seed(3)
    for channels, groups in ((26, 2), (16, 1), (3, 3)):
        shape = 5, channels, *inner
        x, grad = (tg.randn(*shape, generator=generator, dtype=tg.float64) for _ in range(2))
        w, b = (tg.randn(channels, generator=generator, dtype=tg.float64) if weighted else None for _ in range(2))
        inputs = [t.float().requires_grad_() for t in (x, w, b) if t is not None]
        found = F.group_norm(inputs[0], groups, *inputs[1:])
        wide = [t.detach().double().requires_grad_() for t in inputs]
        parts = wide[0].reshape(5, groups, -1)
        y = ((parts - parts.mean(-1, True)) / (parts.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()).reshape(shape)
        if weighted:
            y = y * wide[1].reshape(-1, *[1] * len(inner)) + wide[2].reshape(-1, *[1] * len(inner))
        close(found, y.detach().float(), 2e-5)
        wanted = tg.autograd.grad(y, wide, grad)
        for got, want in zip(tg.autograd.grad(found, inputs, grad.float()), wanted):
            close(got, want.float(), 3e-5 * max(1, want.abs().max().item()))
