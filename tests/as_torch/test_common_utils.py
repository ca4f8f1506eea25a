"""`torch.testing._internal.common_utils`, from which libraries take what their tests are made of."""

import unittest

import numpy as np
import pytest


@pytest.fixture
def utils(as_torch):
    from torch.testing._internal import common_utils

    return common_utils


def _run(case):
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result


def test_test_cases_compare_tensors_numbers_and_nested_values(utils, as_torch):
    case, t = utils.TestCase(), as_torch.tensor
    case.assertEqual(t([1.0, 2.0]), t([1.0, 2.0 + 1e-7]))
    case.assertEqual(t([1.0, 2.0]), [1.0, 2.0])
    case.assertEqual(2.0, t(2.0))
    case.assertEqual(t([1.0]), np.array([1.0], "f"))
    case.assertEqual({"a": (t(1), 2.0)}, {"a": (t(1), 2.0)})
    case.assertEqual("a", "a")
    case.assertEqual(t([1.0]), t([1.2]), atol=0.3, rtol=0)
    case.assertEqual(t([1.0]), t([1.0], dtype=as_torch.float64), exact_dtype=False)
    case.assertNotEqual(t([1.0]), t([2.0]))
    for left, right in ((t([1.0]), t([1.1])), (t([1.0]), t([1.0], dtype=as_torch.float64)), ("a", "b"), (1.0, 1.1)):
        with pytest.raises(AssertionError):
            case.assertEqual(left, right)
        case.assertNotEqual(left, right)


def test_tests_are_made_of_their_parameters(utils):
    seen = []

    class Tests(utils.TestCase):
        @utils.parametrize("a", [1, utils.subtest(2, name="two")])
        @utils.parametrize("b,c", [("x", [0]), ("y", [1])])
        def test_them(self, a, b, c):
            seen.append((a, b, c))
            self.assertEqual(a, 1)

    utils.instantiate_parametrized_tests(Tests)
    result = _run(Tests)
    assert sorted(seen) == [(1, "x", [0]), (1, "y", [1]), (2, "x", [0]), (2, "y", [1])]
    assert result.testsRun == 4 and len(result.failures) == 2
    names = unittest.defaultTestLoader.getTestCaseNames(Tests)
    assert all("two" in case.id() for case, _ in result.failures) and "test_them_a_1_b_x_c0" in names


def test_each_test_begins_with_the_same_seed(utils, as_torch):
    drawn = []

    class Tests(utils.TestCase):
        def test_a(self):
            drawn.append(as_torch.rand(1).item())

        def test_b(self):
            drawn.append(as_torch.rand(1).item())

    _run(Tests)
    assert drawn[0] == drawn[1]


def test_what_is_set_inside_is_as_it_was_afterwards(utils, as_torch):
    with utils.freeze_rng_state():
        first = as_torch.rand(1)
    assert as_torch.rand(1) == first
    with utils.set_default_dtype(as_torch.float64):
        assert as_torch.ones(1).dtype == as_torch.float64
    assert as_torch.ones(1).dtype == as_torch.float32
    with utils.TemporaryFileName() as name:
        as_torch.save({"a": first}, name)
        assert as_torch.load(name)["a"] == first
    assert utils.skipIfRocm(len) is len and utils.slowTest(len) is len and not utils.TEST_CUDA


def test_functions_that_put_batches_together(as_torch):
    from torch.utils.data._utils import collate

    class Wave(as_torch.Tensor):
        pass

    def waves(batch, *, collate_fn_map=None):
        return collate.collate_tensor_fn(batch), "waves"

    table = {Wave: waves, as_torch.Tensor: collate.collate_tensor_fn, float: collate.collate_float_fn}
    pair = [as_torch.ones(2).as_subclass(Wave), as_torch.zeros(2).as_subclass(Wave)]
    got, word = collate.collate(pair, collate_fn_map=table)
    assert word == "waves" and got.shape == (2, 2) and type(got) is Wave
    assert collate.collate([1.0, 2.0], collate_fn_map=table).dtype == as_torch.float64
    assert collate.collate_int_fn([1, 2]).tolist() == [1, 2] and collate.collate_str_fn(["a"]) == ["a"]
    assert collate.collate_numpy_array_fn([np.ones(2), np.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert collate.collate_numpy_scalar_fn([np.float32(1), np.float32(2)]).tolist() == [1, 2]
    with pytest.raises(TypeError, match="default_collate: batch must contain"):
        collate.collate_numpy_array_fn([np.array(["a"])])


def test_what_tests_ask_for_stands_where_pytorch_has_it(as_torch):
    from torch.testing._utils import freeze_rng_state, wrapper_set_seed
    from torch.utils._import_utils import _check_module_exists

    assert _check_module_exists("numpy") and not _check_module_exists("no_such_module.inside")
    with freeze_rng_state():
        first = as_torch.rand(2)
    assert as_torch.rand(2).tolist() == first.tolist()
    assert wrapper_set_seed(as_torch.rand, 2).tolist() == wrapper_set_seed(as_torch.rand, 2).tolist()
    x = as_torch.arange(4)
    assert as_torch._C._is_alias_of(x, x[1:]) and not as_torch._C._is_alias_of(x, x.clone())


def test_tensors_among_words_are_compared_by_their_closeness(as_torch):
    from torch.testing._internal.common_utils import TestCase

    def rows(word="a", value=1.0, **more):
        return [
            {"name": word, "x": as_torch.tensor([value]), "kinds": {1, 2}, "nested": (None, ["b", value]), **more},
            3,
        ]

    case = TestCase()
    case.assertEqual(rows(), rows(value=1.0 + 1e-7))
    for other in (
        rows("b"),
        rows(value=2.0),
        rows(kinds={1}),
        rows(nested=(None, ["c", 1.0])),
        rows(more=1),
        rows()[:1],
    ):
        with pytest.raises(AssertionError):
            case.assertEqual(rows(), other)
        case.assertNotEqual(rows(), other)
