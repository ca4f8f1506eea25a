"""torch.testing._internal.common_utils: the parts that tests of other libraries take from PyTorch's own.

`TestCase` compares tensors, numbers and nested values by `assert_close`, and tests are made of parameters by
`parametrize` and `instantiate_parametrized_tests`, as there.
"""

import contextlib
import functools
import inspect
import itertools
import os
import sys
import tempfile
import unittest
from collections.abc import Mapping, Sequence
from numbers import Number

import tinygrad_ext as _tg
from tinygrad_ext.autograd import gradcheck, gradgradcheck
from tinygrad_ext.testing import assert_close, make_tensor

__all__ = [
    "IS_LINUX", "IS_MACOS", "IS_WINDOWS", "TEST_CUDA", "TEST_NUMPY", "TEST_WITH_ROCM", "TEST_WITH_TORCHDYNAMO",
    "TemporaryDirectoryName", "TemporaryFileName", "TestCase", "freeze_rng_state", "gradcheck", "gradgradcheck",
    "instantiate_parametrized_tests", "make_tensor", "parametrize", "run_tests", "set_default_dtype", "skipIfRocm",
    "skipIfTorchDynamo", "slowTest", "subtest",
]  # fmt: skip

IS_LINUX, IS_MACOS, IS_WINDOWS = sys.platform == "linux", sys.platform == "darwin", sys.platform == "win32"
TEST_CUDA = TEST_WITH_ROCM = TEST_WITH_TORCHDYNAMO = False
TEST_NUMPY = True
_COMPARED = (_tg.Tensor, Number)


def _is_compared(value):
    """Whether something in nested values is compared by its closeness."""
    if isinstance(value, Mapping):
        return any(map(_is_compared, value.values()))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return any(map(_is_compared, value))
    return (isinstance(value, _COMPARED) and not isinstance(value, bool)) or type(value).__module__ == "numpy"


def _is_row(value):
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _with_others(x, y):
    """Keys of two dicts, or numbers from the end of two lists, at which something is that no closeness is asked of."""
    if isinstance(x, Mapping) and isinstance(y, Mapping):
        keys = [key for key in x if key in y]
    elif _is_row(x) and _is_row(y) and len(x) == len(y):
        keys = reversed(range(len(x)))
    else:
        return []
    return [key for key in keys if not (_all_compared(x[key]) and _all_compared(y[key]))]


def _all_compared(value):
    if isinstance(value, Mapping):
        return all(map(_all_compared, value.values()))
    return all(map(_all_compared, value)) if _is_row(value) else value is None or _is_compared_itself(value)


def _is_compared_itself(value):
    return isinstance(value, _COMPARED) or type(value).__module__ == "numpy"


def _without(value, at):
    """A dict or a list without an entry."""
    if isinstance(value, Mapping):
        return {key: part for key, part in value.items() if key != at}
    return [part for i, part in enumerate(value) if i != at]


def _alike(x, y):
    """A pair of which one is a tensor, with the other as one too."""
    array = type(y).__module__ == "numpy"
    if not isinstance(x, _tg.Tensor) or not (array or isinstance(y, (Number, Sequence))):
        return x, y
    return x, _tg.as_tensor(y, dtype=None if array else x.dtype)


class TestCase(unittest.TestCase):
    """unittest's, whose `assertEqual` knows tensors; each test begins with the seed 1234."""

    maxDiff = None

    def setUp(self):
        _tg.manual_seed(1234)

    def assertEqual(
        self, x, y, msg=None, *, atol=None, rtol=None, equal_nan=True, exact_dtype=True, exact_device=False,
        exact_layout=False, exact_stride=False, exact_is_coalesced=False,
    ):  # fmt: skip
        """Equal, or as close as `assert_close` asks of tensors and numbers."""
        if not (_is_compared(x) or _is_compared(y)):
            super().assertEqual(x, y, msg)
            return
        rules = dict(
            rtol=rtol, atol=atol, equal_nan=equal_nan, exact_dtype=exact_dtype, exact_device=exact_device,
            exact_layout=exact_layout, exact_stride=exact_stride,
        )  # fmt: skip
        for at in _with_others(x, y):  # text and the like, which assert_close refuses
            self.assertEqual(x[at], y[at], msg, **rules)
            x, y = _without(x, at), _without(y, at)
        x, y = _alike(x, y)
        y, x = _alike(y, x)
        rules.update(("check" + name[5:], rules.pop(name)) for name in list(rules) if name[:5] == "exact")
        assert_close(x, y, msg=msg, **rules)

    def assertNotEqual(self, x, y, msg=None, **tolerances):
        """Not so."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, **tolerances)

    def assertEqualIgnoreType(self, *args, **kwargs):
        """`assertEqual` of any two dtypes."""
        self.assertEqual(*args, exact_dtype=False, **kwargs)


class subtest:
    """The arguments of one test, with a name and decorators of its own."""

    def __init__(self, arg_values, name=None, decorators=None):
        self.arg_values, self.name, self.decorators = arg_values, name, decorators or []


class parametrize:
    """Decorator: a test for each of the values of "names, separated, by commas"."""

    def __init__(self, arg_str, arg_values, name_fn=None):
        self.names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.values, self.name_fn = list(arg_values), name_fn

    def __call__(self, test):
        test.parametrized = [*getattr(test, "parametrized", []), self]
        return test

    def rows(self):
        """(end of the name, {name: value}, decorators) of each."""
        for number, row in enumerate(self.values):
            one = row if isinstance(row, subtest) else subtest(row)
            values = one.arg_values if len(self.names) > 1 else [one.arg_values]
            end = one.name or (self.name_fn(*values) if self.name_fn else self.end(values, number))
            yield str(end), dict(zip(self.names, values)), one.decorators

    def end(self, values, number):
        """As PyTorch writes it."""
        return "_".join(
            f"{name}_{value}" if isinstance(value, (int, float, str)) else f"{name}{number}"
            for name, value in zip(self.names, values)
        )


def _bound(test, arguments):
    """A test with its arguments."""

    @functools.wraps(test)
    def made(self):
        return test(self, **arguments)

    del made.parametrized, made.__wrapped__
    return made


def instantiate_parametrized_tests(generic_cls):
    """Put the tests that `parametrize` stands for into a class, in the place of those that it decorates."""
    for name, test in inspect.getmembers(generic_cls, lambda f: hasattr(f, "parametrized")):
        delattr(generic_cls, name)
        for rows in itertools.product(*(decorator.rows() for decorator in reversed(test.parametrized))):
            arguments = {key: value for _, row, _ in rows for key, value in row.items()}
            made = _bound(test, arguments)
            for decorator in [d for *_, decorators in rows for d in decorators]:
                made = decorator(made)
            setattr(generic_cls, "_".join([name, *(end for end, *_ in rows)]), made)
    return generic_cls


def run_tests(argv=None):
    """Run the tests of the program."""
    unittest.main(argv=argv)


@contextlib.contextmanager
def freeze_rng_state():
    """The generator goes on afterwards where it stood."""
    state = _tg.get_rng_state()
    try:
        yield
    finally:
        _tg.set_rng_state(state)


def wrapper_set_seed(op, *args, **kwargs):
    """What the op gives with one seed always; the generator goes on where it stood."""
    with freeze_rng_state():
        _tg.manual_seed(42)
        return op(*args, **kwargs)


@contextlib.contextmanager
def set_default_dtype(dtype):
    """Another default dtype inside."""
    before = _tg.get_default_dtype()
    _tg.set_default_dtype(dtype)
    try:
        yield
    finally:
        _tg.set_default_dtype(before)


@contextlib.contextmanager
def TemporaryFileName(*args, suffix=None, **kwargs):
    """The name of a file that is gone afterwards."""
    with tempfile.NamedTemporaryFile(*args, delete=False, suffix=suffix) as file:
        pass
    try:
        yield file.name
    finally:
        os.unlink(file.name)


@contextlib.contextmanager
def TemporaryDirectoryName(suffix=None):
    """The name of a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(suffix=suffix) as name:
        yield name


def _as_it_is(fn=None, *args, **kwargs):
    return fn if callable(fn) else _as_it_is


skipIfRocm = skipIfTorchDynamo = slowTest = _as_it_is
