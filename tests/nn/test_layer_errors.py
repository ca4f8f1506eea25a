"""What layers refuse, and what they accept in old spellings."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 4, 3, groups=0), ValueError, "groups must be a positive integer"),
        (lambda: nn.Conv2d(1, 1, 3, padding="left"), ValueError, "Invalid padding string"),
        (lambda: nn.Conv2d(1, 1, 3, stride=2, padding="same"), ValueError, "not supported for strided"),
        (lambda: nn.Conv2d(1, 1, 3, padding_mode="x"), ValueError, "padding_mode must be one of"),
        (lambda: nn.BatchNorm1d(3)(tg.ones(3)), ValueError, "expected 2D or 3D input (got 1D input)"),
        (lambda: nn.BatchNorm2d(3)(tg.ones(3, 3)), ValueError, "expected 4D input (got 2D input)"),
        (lambda: nn.GroupNorm(2, 3), ValueError, "must be divisible by num_groups"),
        (lambda: nn.Dropout(1.5), ValueError, "between 0 and 1"),
        (lambda: nn.Hardtanh(1, 0), AssertionError, "must be larger"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), AssertionError, "within num_embeddings"),
        (lambda: nn.Embedding(3, 2, _weight=tg.ones(2, 2)), AssertionError, "does not match"),
        (lambda: nn.Embedding.from_pretrained(tg.ones(2)), AssertionError, "2-dimensional"),
        (lambda: nn.Unflatten("x", (1,)), TypeError, "dim must be an int"),
        (lambda: nn.Unflatten(1, 3), TypeError, "must be a tuple of ints"),
        (lambda: nn.Unflatten(1, (1, 2.0)), TypeError, "float at pos 1"),
    ],
)
def test_wrong_arguments_raise(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_from_pretrained_is_frozen_unless_asked():
    table = tg.ones(2, 3)
    assert not nn.Embedding.from_pretrained(table).weight.requires_grad
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad


def test_the_older_words_for_reduction_are_translated():
    for arguments, word in (((False,), "sum"), ((True, False), "none"), ((None, True), "mean")):
        with pytest.warns(UserWarning, match="reduction="):
            assert nn.MSELoss(*arguments).reduction == word


def test_dropout_acts_only_while_training():
    layer = nn.Dropout(0.5)
    assert set(layer(tg.ones(1000)).tolist()) == {0.0, 2.0}
    assert layer.eval()(tg.ones(4)).tolist() == [1] * 4


def test_batch_norm_counts_and_resets():
    layer = nn.BatchNorm1d(2)
    layer(tg.ones(3, 2) * 5)
    assert int(layer.num_batches_tracked) == 1 and layer.running_mean.tolist() == [0.5, 0.5]
    layer.reset_running_stats()
    assert int(layer.num_batches_tracked) == 0 and layer.running_var.tolist() == [1, 1]


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_what_padding_gives_is_no_view(mode):
    x = tg.zeros(1, 3, 4, 4)
    for widths in ((0, 0, 0, 0), (0, 0, -1, -1), (-1, 0, 0, 0)):
        nn.functional.pad(x, widths, mode=mode).fill_(4)
        assert not x.any()


def test_padding_mode_reflect_pads_first():
    layer = nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect", bias=False)
    assert layer(tg.ones(1, 1, 4, 4)).shape == (1, 1, 4, 4)
    assert "padding_mode=reflect" in repr(layer)


@pytest.mark.parametrize("sizes", [(0, 3), (0, 2, 3), (0, 2, 3, 3), (1, 0, 3)])
def test_nothing_is_padded_by_itself(sizes):
    pad = (1, 1) * max(len(sizes) - 1, 1) if sizes[0] == 0 else (1, 1)
    for mode in ("reflect", "replicate"):
        with pytest.raises(RuntimeError, match="with possibly 0 batch size and other non-zero dimensions"):
            tg.nn.functional.pad(tg.ones(sizes), pad, mode=mode)


def test_old_names_of_the_limits_of_hardtanh_are_taken_and_warn():
    with pytest.warns(FutureWarning, match="say min_val"):
        layer = nn.Hardtanh(min_value=-2.0, max_value=3.0)
    assert (layer.min_val, layer.max_val) == (-2.0, 3.0)


def test_values_that_only_the_numbers_tell_are_refused():
    x = tg.zeros(3, 5)
    for var in (-tg.ones(3, 5), tg.tensor([1.0, -1.0, 1.0]), -1.0):
        with pytest.raises(ValueError, match="negative"):
            nn.functional.gaussian_nll_loss(x, x, var)
    with pytest.raises(ValueError, match="output_ratio"):
        nn.FractionalMaxPool2d([2, 1], output_ratio=[0.5, 0.5, 0.6])(tg.ones(1, 1, 8, 8))
