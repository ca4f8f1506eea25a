"""utils._pytree: leaves with the way to each."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils import _pytree as pytree

Pair = namedtuple("Pair", "x y")
TREE = (
    ["hello", [1, 2], {"foo": [3], "bar": [Pair("baz", 10)]}],
    OrderedDict(b=4, a=(5,)),
    defaultdict(list, c=6),
    deque([7]),
)
PATHS = [
    "[0][0]: hello",
    "[0][1][0]: 1",
    "[0][1][1]: 2",
    "[0][2]['foo'][0]: 3",
    "[0][2]['bar'][0].x: baz",
    "[0][2]['bar'][0].y: 10",
    "[1]['b']: 4",
    "[1]['a'][0]: 5",
    "[2]['c']: 6",
    "[3][0]: 7",
]


class Box:
    def __init__(self, *items):
        self.items = items


@pytest.fixture
def registered():
    def register(**more):
        pytree.register_pytree_node(Box, lambda b: (list(b.items), None), lambda items, _: Box(*items), **more)

    yield register
    pytree._deregister_pytree_node(Box)


def test_paths_are_written_as_python_reaches_the_leaves():
    pairs, spec = pytree.tree_flatten_with_path(TREE)
    assert [f"{pytree.keystr(path)}: {leaf}" for path, leaf in pairs] == PATHS
    assert pairs == pytree.tree_leaves_with_path(TREE)
    assert ([leaf for _, leaf in pairs], spec) == pytree.tree_flatten(TREE)
    assert all(pytree.key_get(TREE, path) == leaf for path, leaf in pairs)
    assert pairs[4][0] == (
        pytree.SequenceKey(0),
        pytree.SequenceKey(2),
        pytree.MappingKey("bar"),
        pytree.SequenceKey(0),
        pytree.GetAttrKey("x"),
    )


def test_fields_of_what_ops_return_are_keys():
    (first, second), _ = pytree.tree_flatten_with_path(tg.tensor([[2, 1]]).max(1))
    assert pytree.keystr(first[0]) == ".values" and pytree.keystr(second[0]) == ".indices"


def test_leaves_can_be_told_and_single_ones_have_no_path():
    found = pytree.tree_leaves_with_path([{"a": 1}, [2]], is_leaf=lambda x: isinstance(x, dict))
    assert [(pytree.keystr(path), leaf) for path, leaf in found] == [("[0]", {"a": 1}), ("[1][0]", 2)]
    assert pytree.tree_leaves_with_path(5) == [((), 5)]


def test_functions_get_the_path_and_one_leaf_of_each_tree():
    made = pytree.tree_map_with_path(
        lambda path, a, b: (pytree.keystr(path), a + b), {"a": [1], "b": 2}, {"a": [10], "b": 20}
    )
    assert made == {"a": [("['a'][0]", 11)], "b": ("['b']", 22)}
    with pytest.raises(ValueError, match="Node arity or keys mismatch"):
        pytree.tree_map_with_path(lambda path, a, b: a, [1, 2], [1])


def test_registered_classes_say_their_keys(registered):
    registered(flatten_with_keys_fn=lambda b: ([(f"<{k}>", item) for k, item in enumerate(b.items)], None))
    pairs, spec = pytree.tree_flatten_with_path([Box(1, Box(2))])
    assert [pytree.keystr(path) for path, _ in pairs] == ["[0]<0>", "[0]<1><0>"]
    assert pytree.tree_unflatten([3, 4], spec)[0].items[1].items == (4,)
    assert pytree.SUPPORTED_NODES[Box].flatten_with_keys_fn is not None


def test_classes_without_keys_are_refused(registered):
    registered()
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn for type"):
        pytree.tree_flatten_with_path(Box(1))


def test_leaves_are_chosen_by_a_function_too():
    assert pytree.tree_map_only(lambda x: x > 1, lambda x: -x, [1, 2, (3,)]) == [1, -2, (-3,)]
    assert pytree.tree_map_only((int, str), lambda x: x * 2, [1.5, 2, "a"]) == [1.5, 4, "aa"]
