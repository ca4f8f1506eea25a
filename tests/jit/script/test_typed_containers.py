"""Lists and dicts of one type: what `jit.script` makes of a list and a dict."""

import copy
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


@jit.script
def grow(numbers: list[int], names: dict[str, int]):
    numbers.append(7)
    names["n"] = len(numbers)


def test_programs_and_python_share_them():
    numbers, names = jit.script([1]), jit.script({"a": 1})
    grow(numbers, names)
    numbers += [2]
    numbers[-1:] = [3, 4]
    names |= {"b": 2}
    assert numbers == [1, 7, 3, 4] and names == {"a": 1, "n": 2, "b": 2}
    assert repr(numbers) == "[1, 7, 3, 4]" and isinstance(numbers, list) and jit.script(numbers) is numbers
    assert [numbers.count(7), numbers.index(3), 9 in numbers, "z" in names] == [1, 2, False, False]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a, d: a.append("x"),
        lambda a, d: a.extend({"x": 1}),
        lambda a, d: a.insert(0, 1.5),
        lambda a, d: a.remove("x"),
        lambda a, d: a.count("x"),
        lambda a, d: a.index("x"),
        lambda a, d: a.__setitem__(0, "x"),
        lambda a, d: a.__setitem__(slice(0, 1), ["x"]),
        lambda a, d: "x" in a,
        lambda a, d: d.__setitem__(1, 1),
        lambda a, d: d.__setitem__("x", "y"),
        lambda a, d: d.setdefault("x", "y"),
        lambda a, d: d.update(x="y"),
        lambda a, d: d.__delitem__(1),
    ],
)
def test_python_writes_only_what_is_of_their_type(wrong):
    numbers, names = jit.script([1, 2]), jit.script({"a": 1})
    with pytest.raises(TypeError, match=r"of type (int|str) was expected"):
        wrong(numbers, names)
    assert numbers == [1, 2] and names == {"a": 1}


def test_a_key_of_another_type_is_no_key():
    with pytest.raises(KeyError, match="keys of this dict are str"):
        assert 1 not in jit.script({"a": 1})


def test_values_of_several_kinds_are_refused():
    with pytest.raises(RuntimeError, match="Could not infer type"):
        jit.script([1, object()])


def test_they_keep_their_types_in_copies():
    for each in (jit.script([1]), jit.script({"a": 1})):
        for other in (copy.deepcopy(each), pickle.loads(pickle.dumps(each))):
            assert other == each and type(other) is type(each) and other.type == each.type


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = jit.script([1])

    def forward(self, x, weights: list[tg.Tensor]):
        self.sizes.append(x.size(0))
        return x * weights[0]


def test_as_attributes_and_with_gradients(tmp_path):
    counted, w = jit.script(Counted()), tg.tensor([2.0], requires_grad=True)
    counted(tg.ones(3), jit.script([w])).sum().backward()
    assert w.grad.item() == 3 and counted.sizes == [1, 3]
    jit.save(counted, tmp_path / "c.tgx")
    assert jit.load(tmp_path / "c.tgx").sizes == [1, 3]
