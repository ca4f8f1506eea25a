"""Named results print and behave as PyTorch's, under their own name and PyTorch's."""

import copy
import pickle
import subprocess
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import return_types

X = [[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]]
RESULTS = {
    "max": lambda T: T.max(T.tensor(X), 1),
    "min": lambda T: T.tensor(X).min(0),
    "median": lambda T: T.tensor(X).median(1),
    "nanmedian": lambda T: T.tensor(X).nanmedian(1),
    "sort": lambda T: T.sort(T.tensor(X)),
    "topk": lambda T: T.tensor(X).topk(2),
    "kthvalue": lambda T: T.tensor(X).kthvalue(2),
    "cummax": lambda T: T.cummax(T.tensor(X), 0),
    "cummin": lambda T: T.cummin(T.tensor(X), 0),
    "aminmax": lambda T: T.aminmax(T.tensor(X)),
}


def outcome(run):
    try:
        return repr(run())
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_that_of_torch(name):
    torch = pytest.importorskip("torch")
    ours, theirs = RESULTS[name](tg), RESULTS[name](torch)
    assert repr(ours) == repr(theirs) == str(ours)
    assert type(ours).__name__ == type(theirs).__name__ == name
    for attribute in ("n_fields", "n_sequence_fields", "n_unnamed_fields", "__match_args__"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert hasattr(torch.return_types, name) and getattr(return_types, name) is type(ours)


GIVEN = {
    "max": lambda T, out: T.max(T.tensor(X), 1, out=out),
    "sort": lambda T, out: T.sort(T.tensor(X), out=out),
    "topk": lambda T, out: T.topk(T.tensor(X), 2, out=out),
    "kthvalue": lambda T, out: T.kthvalue(T.tensor(X), 1, out=out),
    "cummax": lambda T, out: T.cummax(T.tensor(X), 0, out=out),
    "mode": lambda T, out: T.mode(T.tensor(X), 0, out=out),
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_result_in_given_tensors_has_names_too(name):
    torch = pytest.importorskip("torch")
    given = {T: (T.empty(0), T.empty(0, dtype=T.int64)) for T in (tg, torch)}
    ours, theirs = GIVEN[name](tg, given[tg]), GIVEN[name](torch, given[torch])
    assert repr(ours) == repr(theirs) and type(ours).__name__ == type(theirs).__name__ == name + "_out"
    assert ours.values is given[tg][0] and ours.indices is given[tg][1]
    assert type(GIVEN[name](tg, list(given[tg]))) is type(ours) is getattr(return_types, name + "_out")


@pytest.mark.parametrize(
    "use",
    [
        lambda R, m: R.max((1, 2)),
        lambda R, m: R.max([1, 2]),
        lambda R, m: R.max(x for x in (1, 2)),
        lambda R, m: R.max((1, 2), {}),
        lambda R, m: R.max_out((1, 2)),
        lambda R, m: R.max(),
        lambda R, m: R.max(1),
        lambda R, m: R.max((1,)),
        lambda R, m: R.max((1, 2, 3)),
        lambda R, m: type(m + (1,)),
        lambda R, m: len(m[:1]),
        lambda R, m: setattr(m, "values", 1),
        lambda R, m: hasattr(m, "_fields"),
        lambda R, m: type(copy.copy(m)) is type(m),
        lambda R, m: type(copy.deepcopy(m)) is type(m),
        lambda R, m: type(pickle.loads(pickle.dumps(m))) is type(m),
        lambda R, m: m.__reduce__()[1][1],
        lambda R, m: type(m).__mro__[1:],
        lambda R, m: R.max in R.all_return_types and R.max_out in R.all_return_types,
    ],
)
def test_a_type_behaves_as_in_torch(use):
    torch = pytest.importorskip("torch")
    ours, theirs = (outcome(lambda T=T: use(T.return_types, RESULTS["max"](T))) for T in (tg, torch))
    if isinstance(ours, tuple):
        assert ours[0] is theirs[0]
    else:
        assert ours == theirs


def test_types_are_made_when_they_are_asked_for():
    """Of an import none are; every name is there all the same."""
    code = (
        "import tinygrad_ext as tg; R = tg.return_types; few = len(R._types)\n"
        "tg.ones(2, 2).max(1); one = len(R._types); all = R.all_return_types\n"
        "print(few, one, {t.__name__ for t in all} <= set(dir(R)), all is R.all_return_types, R.max in all)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "1", "True", "True", "True"]


def test_items_are_attributes_and_a_pattern():
    match RESULTS["max"](tg):
        case return_types.max(values, indices):
            assert values.tolist() == [5.0, 6.0] and indices.tolist() == [1, 2]
        case _:
            raise AssertionError
    values, indices = RESULTS["max"](tg)
    assert RESULTS["max"](tg).values.equal(values)


def test_a_name_that_is_missing_says_what_is_near():
    with pytest.raises(AttributeError, match="'kthvalue'"):
        return_types.kthvalues


def test_as_torch_finds_the_module():
    code = (
        "import torch, torch.return_types as R, pickle\n"
        "m = torch.ones(2, 2).max(0)\n"
        "assert type(m) is R.max is torch.return_types.max and type(pickle.loads(pickle.dumps(m))) is R.max\n"
        "assert repr(m).startswith('torch.return_types.max(\\nvalues=tensor(')"
    )
    done = subprocess.run(
        [sys.executable, "-c", "from tinygrad_ext import as_torch; as_torch.install()\n" + code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
