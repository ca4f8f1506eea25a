"""Arguments of pooling with drawn windows, masks of several ways of pruning, and texts of refusals and warnings."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.nn import functional as F
from tinygrad_ext.nn.utils import prune


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("name", ["kernel_size", "output_size"])
def test_drawn_windows_take_a_number_or_one_for_each_dimension(dims, name):
    pool, x = getattr(F, f"fractional_max_pool{dims}d"), tg.randn(1, 2, *[7] * dims)
    numbers = {"kernel_size": 2, "output_size": 3}
    assert pool(x, **numbers).shape == pool(x, **{**numbers, name: [numbers[name]] * dims}).shape
    for wrong in ((), (1,), [2] * (dims + 1)):
        with pytest.raises(
            RuntimeError, match=f"fractional_max_pool{dims}d: {name} must either be a single int, or a tuple"
        ):
            pool(x, **{**numbers, name: wrong})


def test_masks_of_several_ways_of_pruning_have_the_weights_dtype():
    ways = prune.PruningContainer()
    ways._tensor_name = "weight"
    way = prune.L1Unstructured(amount=2)
    way._tensor_name = "weight"
    ways.add_pruning_method(way)
    before = tg.tensor([[1, 1, 1, 0], [1, 1, 0, 1]])
    mask = ways.compute_mask(tg.arange(1.0, 9.0, dtype=tg.float64).view(2, 4), before)
    assert mask.dtype is tg.float64 and mask.tolist() == [[0, 0, 1, 0], [1, 1, 0, 1]]
    assert before.tolist() == [[1, 1, 1, 0], [1, 1, 0, 1]]


def test_channels_of_unusual_inputs_are_dropped_with_a_warning():
    for drop, rank in ((F.dropout2d, 5), (F.dropout2d, 2), (F.dropout3d, 6)):
        with pytest.warns(UserWarning, match=f"Received a {rank}-D input to {drop.__name__}"):
            drop(tg.ones(*[2] * rank))


def test_lengths_that_are_not_sorted_say_what_to_pass():
    with pytest.raises(RuntimeError, match="You can pass `enforce_sorted=False`, and they are sorted here: got"):
        nn.utils.rnn.pack_padded_sequence(tg.ones(3, 2, 1), tg.tensor([1, 3]))
