"""Questions about those leaves of a tree that are of a type."""

from collections import defaultdict

import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils import _pytree as pytree


def test_all_and_any_leaves_of_a_type():
    tree = {"a": [tg.ones(2), 3], "b": (tg.zeros(1), "text")}
    assert pytree.tree_all_only(int, lambda x: x == 3, tree) and not pytree.tree_any_only(int, lambda x: x > 3, tree)
    assert not pytree.tree_all_only(tg.Tensor, lambda x: x.any(), tree)
    assert pytree.tree_any_only((tg.Tensor, int), lambda x: x is tree["a"][0], tree)
    assert pytree.tree_all_only(float, lambda x: False, tree) and not pytree.tree_any_only(float, lambda x: True, tree)


@pytest.mark.parametrize("context", [[], (), [int]], ids=str)
def test_a_structure_written_by_hand_whose_context_is_too_short_is_refused(context):
    spec = pytree.TreeSpec(defaultdict, context, [pytree.LeafSpec()])
    with pytest.raises(ValueError, match="values? to unpack"):
        pytree.tree_unflatten([1], spec)
