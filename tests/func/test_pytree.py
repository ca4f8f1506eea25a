"""Trees taken apart and put together again."""

import copy
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from tinygrad_ext.utils import _pytree as tree

Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    "value, leaves",
    [
        (1, [1]),
        (None, [None]),
        ((1, [2, {"a": 3}]), [1, 2, 3]),
        (Pair(1, (2,)), [1, 2]),
        (OrderedDict(b=1, a=2), [1, 2]),
        (defaultdict(list, a=1), [1]),
        (deque([1, 2], 5), [1, 2]),
        ([], []),
    ],
)
def test_a_tree_comes_back_as_it_was(value, leaves):
    found, spec = tree.tree_flatten(value)
    assert found == leaves and spec.num_leaves == len(leaves)
    again = tree.tree_unflatten(found, spec)
    assert again == value and type(again) is type(value)
    assert tree.tree_structure(value) == spec and tree.tree_leaves(value) == leaves
    assert tree.tree_is_leaf(value) == (leaves == [value]) and tree.tree_is_leaf([1], lambda v: v == [1])


def test_maps_over_trees_of_the_same_structure():
    assert tree.tree_map(lambda a, b: a + b, (1, {"k": 2}), (10, {"k": 20})) == (11, {"k": 22})
    assert tree.tree_map_only(int, str, [1, "x", 2.0]) == ["1", "x", 2.0]
    with pytest.raises(ValueError, match="mismatch"):
        tree.tree_map(lambda a, b: a, (1, 2), [1, 2])


def test_a_leaf_may_stand_for_a_branch():
    spec = tree.tree_structure((1, [2, 3]))
    assert tree._broadcast_to_and_flatten(0, spec) == [0, 0, 0]
    assert tree._broadcast_to_and_flatten((0, None), spec) == [0, None, None]
    assert tree._broadcast_to_and_flatten((0, (1, 2)), spec) is None


def test_classes_of_a_program_can_be_containers():
    class Box:
        def __init__(self, value):
            self.value = value

    tree.register_pytree_node(Box, lambda b: ([b.value], None), lambda children, _: Box(children[0]))
    try:
        assert tree.tree_map(lambda x: x + 1, Box(1)).value == 2
        with pytest.raises(ValueError, match="already registered"):
            tree.register_pytree_node(Box, None, None)
    finally:
        tree._deregister_pytree_node(Box)
    assert tree.tree_leaves(Box(1)) != [1]


def test_a_wrong_number_of_leaves_is_told():
    with pytest.raises(ValueError, match="holds 2 items"):
        tree.tree_unflatten([1], tree.tree_structure((1, 2)))


@pytest.mark.parametrize("value", [1, [1, {"a": 2, "b": (3,)}], (), {"x": OrderedDict(y=1)}])
def test_a_spec_can_be_copied_and_pickled(value):
    spec = tree.tree_structure(value)
    for other in (copy.copy(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert other == spec and other.num_leaves == spec.num_leaves and other.is_leaf() == spec.is_leaf()


@pytest.mark.parametrize(("value", "count"), [(1, 1), ((), 1), ([1, {"a": 2, "b": (3,)}], 6)])
def test_a_spec_counts_its_containers_and_leaves(value, count):
    assert tree.tree_structure(value).num_nodes == count
