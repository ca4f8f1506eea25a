"""Rules of losses, embedding and one_hot that the sweep over all ops cannot know."""

import math

import numpy as np
import pytest

import tinygrad_ext as tg
import tinygrad_ext.nn.functional as F
from tinygrad_ext.autograd import gradcheck, gradgradcheck

BY_PAIR = [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss]


@pytest.mark.parametrize("loss", BY_PAIR)
def test_other_sizes_broadcast_with_a_warning_and_impossible_ones_raise(loss):
    with pytest.warns(UserWarning, match="Using a target size"):
        assert loss(tg.zeros(3), tg.ones(2, 3), reduction="none").shape == (2, 3)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="must match the size of tensor b"):
        loss(tg.zeros(3), tg.ones(2))


@pytest.mark.parametrize("loss", [*BY_PAIR, F.kl_div, F.binary_cross_entropy_with_logits])
def test_an_unknown_reduction_is_refused(loss):
    with pytest.raises(ValueError, match="x is not a valid value for reduction"):
        loss(tg.zeros(3), tg.zeros(3), reduction="x")


def test_the_old_options_still_work_and_warn():
    x, y = tg.zeros(3), tg.ones(3)
    for old, shape in (({"reduce": False}, (3,)), ({"size_average": False}, ())):
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
            assert F.mse_loss(x, y, **old).shape == shape


def test_a_mean_over_nothing_is_nan_and_a_sum_is_zero():
    empty = tg.zeros(0)
    assert math.isnan(F.mse_loss(empty, empty).item()) and F.mse_loss(empty, empty, reduction="sum").item() == 0
    assert math.isnan(F.cross_entropy(tg.zeros(2, 3), tg.tensor([-100, -100])).item())


def test_weights_of_elements_divide_a_mean_by_their_sum():
    x, y, w = tg.tensor([1.0, 2.0]), tg.tensor([0.0, 0.0]), tg.tensor([1.0, 3.0])
    assert F.mse_loss(x, y, weight=w).item() == pytest.approx(13 / 4)
    with pytest.raises(ValueError, match="must have the same size"):
        F.mse_loss(x, y, weight=tg.ones(3))


def test_mixed_dtypes_promote_and_gradients_return_in_the_leafs_dtype():
    x, y = tg.randn(3, requires_grad=True), tg.randn(3, dtype=tg.float64)
    loss = F.mse_loss(x, y)
    loss.backward()
    assert loss.dtype == tg.float64 and x.grad.dtype == tg.float32


def test_a_long_sum_of_squares_keeps_its_digits():
    n = 3_000_000
    assert F.mse_loss(tg.full((n,), 0.1), tg.zeros(n), reduction="sum").item() == pytest.approx(0.01 * n, rel=1e-6)


@pytest.mark.parametrize(
    ("x", "target", "error", "text"),
    [
        ((3, 4), [0, 1], ValueError, "Expected input batch_size (3) to match target batch_size (2)."),
        ((3, 4), [0, 1, 4], IndexError, "Target 4 is out of bounds."),
        ((3, 4), [0, 1, -1], IndexError, "Target -1 is out of bounds."),
        ((3, 4), [0.0, 1.0, 2.0], RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
        ((2, 4, 2), [[0, 1, 2], [0, 1, 2]], RuntimeError, "Expected target size [2, 2], got [2, 3]"),
        ((2, 4), [[0, 1], [0, 1]], RuntimeError, "multi-target not supported"),
    ],
)
@pytest.mark.parametrize("loss", [F.nll_loss, F.cross_entropy])
def test_targets_that_do_not_fit_are_refused(loss, x, target, error, text):
    with pytest.raises(error) as refusal:
        loss(tg.zeros(*x), tg.tensor(target))
    assert text in str(refusal.value)


@pytest.mark.parametrize("loss", [F.nll_loss, F.cross_entropy])
def test_weights_of_classes_must_fit_and_have_no_gradient(loss):
    x, target = tg.zeros(3, 4), tg.tensor([0, 1, 2])
    with pytest.raises(RuntimeError, match="defined either for all 4 classes or no classes"):
        loss(x, target, tg.ones(3))
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'weight'"):
        loss(x, target, tg.ones(4, requires_grad=True))


def test_bytes_are_class_numbers_too():
    x = tg.randn(3, 4)
    target = tg.tensor([0, 1, 2])
    assert F.cross_entropy(x, target.to(tg.uint8)).item() == F.cross_entropy(x, target).item()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_class_numbers_equal_their_one_hot_probabilities(reduction, smoothing):
    x, target = tg.randn(5, 4, 3), tg.randint(0, 4, (5, 3))
    hard = F.cross_entropy(x, target, reduction=reduction, label_smoothing=smoothing)
    probabilities = F.one_hot(target, 4).movedim(-1, 1).float()
    soft = F.cross_entropy(x, probabilities, reduction=reduction, label_smoothing=smoothing)
    assert (hard - soft).abs().max().item() < 1e-5


@pytest.mark.parametrize(
    "options", [{}, {"ignore_index": 2}, {"label_smoothing": 0.2}, {"reduction": "none"}, {"reduction": "sum"}]
)
def test_both_derivatives_of_cross_entropy(options):
    x = tg.randn(4, 3, dtype=tg.float64, requires_grad=True)
    weight = tg.tensor([0.5, 1.0, 2.0], dtype=tg.float64)

    def run(x):
        return F.cross_entropy(x, tg.tensor([0, 2, 1, 1]), weight, **options)

    assert gradcheck(run, (x,)) and gradgradcheck(run, (x,))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: F.cross_entropy(tg.zeros(2, 3), tg.zeros(2, 3), ignore_index=1),
            RuntimeError,
            "ignore_index is not supported",
        ),
        (
            lambda: F.cross_entropy(tg.zeros(2, 3), tg.tensor([0, 1]), label_smoothing=2.0),
            RuntimeError,
            "between 0.0 and 1.0",
        ),
        (
            lambda: F.binary_cross_entropy(tg.zeros(2) - 1, tg.zeros(2)),
            RuntimeError,
            "all elements of input should be between 0 and 1",
        ),
        (lambda: F.binary_cross_entropy(tg.zeros(2), tg.zeros(2) + 2), RuntimeError, "all elements of target"),
        (lambda: F.binary_cross_entropy(tg.zeros(2), tg.zeros(3)), ValueError, "is deprecated"),
        (
            lambda: F.binary_cross_entropy_with_logits(tg.zeros(2), tg.zeros(3)),
            ValueError,
            "must be the same as input size",
        ),
        (
            lambda: F.smooth_l1_loss(tg.zeros(2), tg.zeros(2), beta=-1.0),
            RuntimeError,
            "does not support negative values for beta",
        ),
        (lambda: F.huber_loss(tg.zeros(2), tg.zeros(2), delta=0.0), RuntimeError, "non-positive values for delta"),
    ],
)
def test_losses_say_what_is_wrong(call, error, text):
    with pytest.raises(error) as refusal:
        call()
    assert text in str(refusal.value)


def test_logits_of_any_size_stay_finite():
    x = tg.tensor([1e4, -1e4], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, tg.tensor([0.0, 1.0]), reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [1e4, 1e4] and x.grad.tolist() == [1.0, -1.0]
    assert F.binary_cross_entropy(tg.tensor([0.0]), tg.tensor([1.0])).item() == 100.0


def test_kl_div_tells_about_its_mean():
    with pytest.warns(UserWarning, match="batchmean"):
        F.kl_div(tg.zeros(2, 3), tg.ones(2, 3))


# ---- embedding and one_hot -----------------------------------------------------------------------------------------


def test_embedding_adds_up_rows_that_come_twice_and_skips_the_padding():
    weight = tg.zeros(4, 2, requires_grad=True)
    indices = tg.tensor([[1, 1], [3, 0]])
    F.embedding(indices, weight, padding_idx=3).sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]
    weight.grad = None
    F.embedding(indices, weight, padding_idx=-1, scale_grad_by_freq=True).sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_embedding_shortens_the_rows_in_use():
    weight = tg.tensor([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]], requires_grad=True)
    F.embedding(tg.tensor([0, 1]), weight, max_norm=1.0)
    assert weight[0].norm().item() == pytest.approx(1.0, abs=1e-5)
    assert weight[1].norm().item() == pytest.approx(0.5) and weight[2].tolist() == [30.0, 40.0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda w: F.embedding(tg.tensor([3]), w), IndexError, "index out of range in self"),
        (lambda w: F.embedding(tg.tensor([-1]), w), IndexError, "index out of range in self"),
        (lambda w: F.embedding(tg.tensor([1.0]), w), RuntimeError, "one of the following scalar types: Long, Int"),
        (lambda w: F.embedding(tg.tensor([1]), w[0]), RuntimeError, "'weight' must be 2-D"),
        (lambda w: F.embedding(tg.tensor([1]), w, padding_idx=3), AssertionError, "Padding_idx must be within"),
        (lambda w: F.one_hot(w), RuntimeError, "only applicable to index tensor of type LongTensor"),
        (lambda w: F.one_hot(tg.tensor([-2])), RuntimeError, "Class values must be non-negative"),
        (lambda w: F.one_hot(tg.tensor([3]), 2), RuntimeError, "Class values must be smaller than num_classes"),
        (
            lambda w: F.one_hot(tg.zeros(0).long()),
            RuntimeError,
            "Can not infer total number of classes from empty tensor",
        ),
    ],
)
def test_embedding_and_one_hot_say_what_is_wrong(call, error, text):
    with pytest.raises(error) as refusal:
        call(tg.zeros(3, 2))
    assert text in str(refusal.value)


def test_one_hot_takes_the_largest_class_for_the_last():
    assert F.one_hot(tg.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_functional_names_an_unknown_function_and_its_neighbour():
    with pytest.raises(AttributeError, match="Did you mean 'mse_loss'"):
        F.mse_los


@pytest.mark.parametrize("one", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("two", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shapes", [((2,), ()), ((), (2,)), ((2,), (2,)), ((0,), ())], ids=str)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_mean_squared_error_of_two_dtypes_has_one_dtype_on_every_device(one, two, shapes):
    operands = [tg.ones(s, dtype=getattr(tg, d)) for s, d in zip(shapes, (one, two))]
    on_meta = [t.to("meta") for t in operands]
    for reduction in ("mean", "none"):
        try:
            real = tg.nn.functional.mse_loss(*operands, reduction=reduction)
        except NotImplementedError:  # no loop for half numbers alone
            continue
        assert tg.nn.functional.mse_loss(*on_meta, reduction=reduction).dtype == real.dtype


def test_huber_loss_with_weights_is_the_mean_over_all_elements():
    x, y, w = tg.tensor([0.5, 3.0]), tg.zeros(2), tg.tensor([2.0, 4.0])
    assert F.huber_loss(x, y, weight=w).item() == (2 * 0.125 + 4 * 2.5) / 2
    assert F.huber_loss(x, y, "sum", weight=w).item() == 2 * 0.125 + 4 * 2.5


def test_cross_entropy_of_no_classes():
    loss = F.cross_entropy(tg.zeros(3, 0), tg.zeros(3, 0), label_smoothing=0.1, reduction="none")
    assert loss.tolist() == [0, 0, 0]


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_single_margin_loss_has_the_shape_of_its_target(shape):
    loss = tg.nn.functional.multi_margin_loss(tg.ones(5), tg.zeros(shape, dtype=tg.int64), reduction="none")
    assert loss.shape == shape and loss.sum().item() == pytest.approx(0.8)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize("classes", [1, 2, 10, 24, 25, 40, 600])
def test_margins_of_label_sets_are_right_for_rows_of_any_length(classes, dtype):
    """Few classes go one by one, more by vectors."""
    generator = np.random.default_rng(classes)
    x = generator.standard_normal((20, classes))
    labels = generator.integers(0, classes, (20, classes))
    labels[:, 3:] = -1
    t = tg.tensor(x, dtype=dtype).requires_grad_()
    loss = tg.nn.functional.multilabel_margin_loss(t, tg.from_numpy(labels), reduction="none")
    loss.sum().backward()
    for row, row_labels, found, slope in zip(x, labels, loss.tolist(), t.grad.double().numpy()):
        inside = [j for j in row_labels if j >= 0]
        others = [i for i in range(classes) if i not in inside]
        wanted, total = np.zeros(classes), 0.0
        for j in inside:
            for i in others:
                margin = 1 - row[j] + row[i]
                if margin > 0:
                    total += margin / classes
                    wanted[i] += 1 / classes
                    wanted[j] -= 1 / classes
        assert found == pytest.approx(total, rel=1e-5) and np.allclose(slope, wanted, rtol=0, atol=1e-6)
