"""What a `__torch_dispatch__` returns is asked about before anything relies on it."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.overrides.dispatched import TorchDispatchMode

ANSWERS = {
    "number": 3,
    "nothing": None,
    "text": "text",
    "object": object(),
    "none at all": (),
    "numbers": (1, 2),
    "tensor": tg.ones(1),
    "tensors": [tg.ones(1), tg.ones(2)],
    "a hole": (tg.ones(1), None),
}
ONE = {
    "add": lambda w: w + 1,
    "matmul": lambda w: w @ w,
    "t": lambda w: w.t(),
    "index": lambda w: w[0],
    "cat": lambda w: tg.cat([w, w]),
    "relu": lambda w: w.relu(),
    "softmax": lambda w: w.softmax(0),
    "layer_norm": lambda w: tg.nn.functional.layer_norm(w, (3,)),
    "backward": lambda w: (w * w).sum().backward(),
}
SEVERAL = {
    "max": lambda w: w.max(0),
    "sort": lambda w: w.sort(),
    "svd": lambda w: tg.linalg.svd(w),
    "split": lambda w: w.split(1),
    "unbind": lambda w: w.unbind(),
}


class Answers(TorchDispatchMode):
    def __init__(self, answer):
        self.answer = answer

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.answer


def fits(name, call):
    """Whether that is an answer."""
    if call in ONE:
        return name == "tensor"
    return (name == "tensors" and call != "svd") or (name == "none at all" and call in LISTS)


LISTS = ("split", "unbind")
WRONG = [(name, call) for name in ANSWERS for call in ONE | SEVERAL if not fits(name, call)]


@pytest.mark.parametrize("name, call", WRONG)
def test_what_the_operation_does_not_give_is_refused_where_a_history_is_recorded(name, call):
    w = tg.randn(3, 3, requires_grad=True)
    with (
        pytest.raises(RuntimeError, match=r"a __torch_dispatch__ must return (a|\d )?.*tensors?, .* but returned"),
        Answers(ANSWERS[name]),
    ):
        (ONE | SEVERAL)[call](w)
    assert (w + 1).shape == (3, 3)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("call", ONE | SEVERAL)
def test_nothing_breaks_where_no_history_is_recorded_nor_under_transforms(name, call):
    function, answer = (ONE | SEVERAL)[call], ANSWERS[name]
    for run in (
        lambda: function(tg.randn(3, 3)),
        lambda: tg.func.vmap(function)(tg.randn(2, 3, 3)),
        lambda: tg.func.grad(lambda w: tg.as_tensor(function(w)).sum())(tg.randn(3, 3)),
        lambda: tg.func.jvp(function, (tg.randn(3, 3),), (tg.randn(3, 3),)),
    ):
        try:
            with Answers(answer):
                repr(run())
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
            pass
    assert (tg.ones(2) + 1).tolist() == [2, 2]
