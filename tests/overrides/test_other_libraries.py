"""Another library's tensors in our functions, and ours in theirs: a TypeError that says how to convert them."""

import operator

import pytest

import tinygrad_ext as tg
from tinygrad_ext.nn import functional as F

torch = pytest.importorskip("torch")


class TheirSubclass(torch.Tensor):
    """A subclass of PyTorch's Tensor that answers PyTorch's protocol, as users write them."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class OurSubclass(tg.Tensor):
    """The same of ours."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class JaxArray:
    """What matters of a JAX array: DLPack, operators that know nothing of us, no NumPy protocol."""

    def __dlpack__(self, **kwargs):
        raise AssertionError("converted without being asked")

    def __dlpack_device__(self):
        return (1, 0)

    def __add__(self, other):
        return NotImplemented

    __radd__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = __add__


def ours():
    return [tg.ones(2), tg.ones(2).as_subclass(OurSubclass), tg.nn.Parameter(tg.ones(2))]


def theirs():
    return [torch.ones(2), torch.ones(2).as_subclass(TheirSubclass), torch.nn.Parameter(torch.ones(2)), JaxArray()]


@pytest.mark.parametrize("their", theirs(), ids=lambda t: type(t).__name__)
@pytest.mark.parametrize("our", ours(), ids=lambda t: type(t).__name__)
@pytest.mark.parametrize(
    "call",
    [
        tg.add,
        lambda a, b: tg.add(b, a),
        lambda a, b: a.add(b),
        lambda a, b: tg.exp(b),
        lambda a, b: F.softmax(b, dim=0),
        lambda a, b: F.linear(a, b),
        lambda a, b: tg.cat([a, b]),
        lambda a, b: tg.matmul(a, b),
        lambda a, b: a.copy_(b),
        operator.add,
        lambda a, b: b + a,
        operator.mul,
        lambda a, b: b @ a,
        lambda a, b: a @ b,
        operator.iadd,
        lambda a, b: a[b],
        lambda a, b: a[:, b],
        lambda a, b: operator.setitem(a, 0, b),
        lambda a, b: operator.setitem(a, b, 0),
        lambda a, b: b in a,
        lambda a, b: setattr(a, "data", b),
        lambda a, b: setattr(a, "grad", b),
        lambda a, b: a.sum().backward(b),
        lambda a, b: tg.nn.Parameter(b),
        lambda a, b: tg.einsum("i,i", a, b),
        lambda a, b: tg.add(a, 1, out=b),
    ],
)
def test_our_functions_refuse_their_tensors_and_say_how_to_convert(call, our, their):
    with pytest.raises(TypeError, match="from_dlpack"):
        call(our, their)


@pytest.mark.parametrize("their", theirs()[:3], ids=lambda t: type(t).__name__)
@pytest.mark.parametrize("our", ours(), ids=lambda t: type(t).__name__)
@pytest.mark.parametrize(
    "call",
    [
        torch.add,
        lambda a, b: torch.add(b, a),
        lambda a, b: torch.exp(a),
        lambda a, b: torch.cat([b, a]),
        lambda a, b: torch.nn.functional.softmax(a, dim=0),
        lambda a, b: b.mul(a),
        lambda a, b: b[a.long()],
    ],
)
def test_their_functions_refuse_our_tensors_and_say_how_to_convert(call, our, their):
    with pytest.raises(TypeError, match="from_dlpack|Multiple dispatch failed") as refusal:
        call(our, their)
    if type(their) is not TheirSubclass:
        assert "from_dlpack" in str(refusal.value)


def test_the_message_tells_the_two_tensors_apart():
    with pytest.raises(
        TypeError, match=r"must be Tensor, not torch\.Tensor\. Convert it first with tinygrad_ext\.from"
    ):
        tg.add(tg.ones(2), torch.ones(2))


def test_the_messages_of_attributes_and_parameters_tell_them_apart_too():
    with pytest.raises(TypeError, match=r"'data' must be Tensor, not torch\.Tensor"):
        tg.nn.Parameter(torch.ones(2))
    with pytest.raises(TypeError, match=r"got torch\.Parameter\. Convert it first"):
        tg.ones(2).data = torch.nn.Parameter(torch.ones(2))


def test_all_three_libraries_in_one_call():
    for call in (lambda *a: tg.cat(a), lambda a, b, c: tg.where(b, c, a), lambda a, b, c: tg.addcmul(c, a, b)):
        with pytest.raises(TypeError, match="from_dlpack"):
            call(tg.ones(2), torch.ones(2), JaxArray())


def test_comparing_them_is_refused_too():
    for a, b in ((tg.ones(2), torch.ones(2)), (torch.ones(2), tg.ones(2))):
        for compare in (operator.eq, operator.lt):
            with pytest.raises(TypeError, match="from_dlpack"):
                compare(a, b)


def test_a_mode_does_not_change_it():
    with tg.overrides.BaseTorchFunctionMode(), pytest.raises(TypeError, match="from_dlpack"):
        torch.ones(2) + tg.ones(2)


def test_converting_as_told_works_and_shares_memory():
    a, b = tg.ones(2), torch.ones(2)
    assert (a + tg.from_dlpack(b)).tolist() == [2, 2]
    assert torch.add(torch.from_dlpack(a), b).tolist() == [2, 2]
    tg.from_dlpack(b).add_(1)
    assert b.tolist() == [2, 2]


def test_numpy_arrays_still_take_part_in_operators():
    np = pytest.importorskip("numpy")
    for t in ours()[:2]:
        assert (t + np.ones(2)).tolist() == (np.ones(2) + t).tolist() == [2, 2]


def test_a_type_of_ours_that_converts_may_handle_their_tensors():
    class Bridge:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            args = [tg.from_dlpack(a) if isinstance(a, torch.Tensor) else tg.ones(2) for a in args]
            return func(*args, **(kwargs or {}))

    assert tg.add(Bridge(), torch.ones(2)).tolist() == [2, 2]
