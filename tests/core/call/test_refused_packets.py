"""What `ops.<namespace>.<op>` says of arguments that no overload takes: a RuntimeError as PyTorch, and a TypeError."""

import pytest

import tinygrad_ext as tg

ops, x = tg.ops.aten, tg.ones(2)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: ops.relu(), r"aten::relu\(\) is missing value for argument 'self'\."),
        (lambda: ops.type_as(x), r"aten::type_as\(\) is missing value for argument 'other'\."),
        (lambda: ops.relu(1, 2), r"aten::relu\(\) expected at most 1 argument\(s\) but received 2 argument\(s\)"),
        (lambda: ops.add(x, x, 2), r"aten::add\(\) takes 2 positional argument\(s\) but 3 were given"),
        (lambda: ops.add.Tensor(x, x, beta=2), "Unknown keyword argument 'beta' for operator 'aten::add'"),
        (lambda: ops.exp.default("x"), "argument 'input' .position 1. must be Tensor, not str"),
    ],
)
def test_it_says_why_each_overload_does_not_fit(call, words):
    with pytest.raises(RuntimeError, match=words) as found:
        call()
    assert isinstance(found.value, TypeError) and "Declaration: aten::" in str(found.value)


def test_a_function_raises_a_type_error_alone():
    with pytest.raises(TypeError) as found:
        tg.relu()
    assert not isinstance(found.value, RuntimeError)
