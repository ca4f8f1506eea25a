"""The text of tensors: fixed texts that hold everywhere, and the comparison with PyTorch where it is installed."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinygrad_ext as tg
from tinygrad_ext.tensor.printing import get_printoptions, printoptions, set_printoptions, tensor_repr

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed: nothing to compare the text with")
NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def default_options():
    """Start and leave every test with the default options."""
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


class Marked(tg.Tensor):
    """A subclass that prints under its own name."""


class OwnParameter(tg.nn.Parameter):
    """A subclass of Parameter."""


FIXED = {
    "scalar": (lambda: tg.tensor(3.5), "tensor(3.5000)"),
    "whole floats keep the point": (lambda: tg.tensor([1.0, -20.0]), "tensor([  1., -20.])"),
    "matrix": (lambda: tg.tensor([[4.0, 0.0], [0.5, 3.0]]), "tensor([[4.0000, 0.0000],\n        [0.5000, 3.0000]])"),
    "integers": (lambda: tg.tensor([[1, -20], [300, 4]]), "tensor([[  1, -20],\n        [300,   4]])"),
    "bool": (lambda: tg.tensor([True, False]), "tensor([ True, False])"),
    "nan and infinities": (lambda: tg.tensor([1.0, NAN, -INF]), "tensor([1., nan, -inf])"),
    "no finite value": (lambda: tg.tensor([0.0, NAN, INF]), "tensor([0., nan, inf])"),
    "small values": (lambda: tg.tensor([1.0e-5, 2.5]), "tensor([1.0000e-05, 2.5000e+00])"),
    "large whole values": (lambda: tg.tensor([2.0e8, 1.0]), "tensor([2.0000e+08, 1.0000e+00])"),
    "float16": (lambda: tg.tensor([0.1, 65504.0]).half(), "tensor([9.9976e-02, 6.5504e+04], dtype=torch.float16)"),
    "bfloat16": (lambda: tg.tensor([0.1]).bfloat16(), "tensor([0.1001], dtype=torch.bfloat16)"),
    "int8": (lambda: tg.tensor([1, 2], dtype=tg.int8), "tensor([1, 2], dtype=torch.int8)"),
    "complex": (lambda: tg.tensor([1.5 - 2.0j, -0.25 + 1.0j]), "tensor([ 1.5000-2.j, -0.2500+1.j])"),
    "complex scalar with nan": (lambda: tg.tensor(complex(NAN, -INF)), "tensor(nan-infj)"),
    "empty": (lambda: tg.zeros(0), "tensor([])"),
    "empty matrix": (lambda: tg.zeros(2, 0), "tensor([], size=(2, 0))"),
    "empty integers": (lambda: tg.zeros(0, dtype=tg.int64), "tensor([], dtype=torch.int64)"),
    "summarised": (lambda: tg.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    "meta": (lambda: tg.zeros(2, 3, device="meta"), "tensor(..., device='meta', size=(2, 3))"),
    "meta names any other dtype": (
        lambda: tg.zeros(2, dtype=tg.int64, device="meta"),
        "tensor(..., device='meta', size=(2,), dtype=torch.int64)",
    ),
    "requires grad": (lambda: tg.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
    "grad_fn": (lambda: tg.ones(2, requires_grad=True) + 1, "tensor([2., 2.], grad_fn=<AddBackward0>)"),
    "parameter": (
        lambda: tg.nn.Parameter(tg.ones(2)),
        "Parameter containing:\ntensor([1., 1.], requires_grad=True)",
    ),
    "parameter subclass": (
        lambda: OwnParameter(tg.ones(2)),
        "Parameter containing:\nParameter(OwnParameter([1., 1.], requires_grad=True))",
    ),
    "parameter of a subclass": (
        lambda: tg.nn.Parameter(tg.ones(2).as_subclass(Marked)),
        "Parameter(Marked([1., 1.], requires_grad=True))",
    ),
    "subclass": (lambda: tg.ones(2, 2).as_subclass(Marked), "Marked([[1., 1.],\n        [1., 1.]])"),
}


@pytest.mark.parametrize("name", FIXED)
def test_text_is_as_written_here(name):
    make, text = FIXED[name]
    assert tensor_repr(make()) == text


@pytest.mark.parametrize("name", FIXED)
def test_repr_and_str_show_that_text(name):
    make, text = FIXED[name]
    assert repr(make()) == text
    assert str(make()) == text


def test_rows_and_suffixes_wrap_at_linewidth():
    with printoptions(linewidth=30):
        assert tensor_repr(tg.arange(9, dtype=tg.int32)) == (
            "tensor([0, 1, 2, 3, 4, 5, 6,\n        7, 8],\n       dtype=torch.int32)"
        )
    with printoptions(linewidth=INF):
        assert "\n" not in tensor_repr(tg.arange(999))


def test_summary_keeps_edges_of_every_dimension():
    table = tg.arange(12).reshape(3, 4)
    with printoptions(threshold=5, edgeitems=1):
        assert tensor_repr(table) == "tensor([[ 0,  ...,  3],\n        ...,\n        [ 8,  ..., 11]])"
    with printoptions(threshold=5, edgeitems=0):
        assert tensor_repr(table) == "tensor([...], size=(3, 4))"


def test_only_the_shown_elements_decide_the_notation():
    values = tg.ones(2000)
    values[1000] = 1.0e-20
    assert tensor_repr(values) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


def test_contents_can_be_given():
    assert tensor_repr(tg.ones(2, dtype=tg.float64), tensor_contents="hidden") == "tensor(hidden, dtype=torch.float64)"


def test_default_dtype_is_not_named():
    tg.set_default_dtype(tg.float64)
    try:
        assert tensor_repr(tg.ones(1)) == "tensor([1.])"
        assert tensor_repr(tg.ones(1, dtype=tg.float32)) == "tensor([1.], dtype=torch.float32)"
        assert tensor_repr(tg.ones(1, dtype=tg.complex64)) == "tensor([1.+0.j], dtype=torch.complex64)"
    finally:
        tg.set_default_dtype(tg.float32)


def test_printing_leaves_the_graph_alone():
    leaf = tg.ones(2000, requires_grad=True)
    tensor_repr(leaf)
    assert leaf.grad_fn is None and leaf.grad is None


# Options


def test_profile_sets_four_options_and_given_ones_win():
    set_printoptions(profile="short", edgeitems=9)
    assert get_printoptions() == {"precision": 2, "threshold": 1000, "edgeitems": 9, "linewidth": 80, "sci_mode": None}
    set_printoptions(profile="full")
    assert get_printoptions()["threshold"] == INF


def test_every_call_sets_sci_mode():
    set_printoptions(sci_mode=True)
    assert tensor_repr(tg.tensor([1.0])) == "tensor([1.0000e+00])"
    set_printoptions(precision=2)
    assert get_printoptions()["sci_mode"] is None


def test_sci_mode_false_keeps_the_point():
    set_printoptions(sci_mode=False)
    assert tensor_repr(tg.tensor([1.0e-9, 2.0e7])) == "tensor([       0.0000, 20000000.0000])"


def test_printoptions_restores_after_an_error():
    before = get_printoptions()
    with pytest.raises(KeyError), printoptions(precision=1, sci_mode=True):
        raise KeyError
    assert get_printoptions() == before


def test_returned_options_are_a_copy():
    get_printoptions()["precision"] = 99
    assert get_printoptions()["precision"] == 4


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"precision": "a"}, ValueError),
        ({"precision": 2.5}, ValueError),
        ({"precision": True}, ValueError),
        ({"precision": -1}, ValueError),
        ({"edgeitems": "x"}, TypeError),
        ({"edgeitems": -1}, ValueError),
        ({"threshold": "x"}, TypeError),
        ({"linewidth": "w"}, TypeError),
    ],
)
def test_bad_option_is_refused_when_set_and_changes_nothing(options, kind):
    before = get_printoptions()
    with pytest.raises(kind, match=f"set_printoptions.*'{next(iter(options))}' must be .* got .*Pass"):
        set_printoptions(**options)
    assert get_printoptions() == before


def test_unknown_option_and_profile():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        set_printoptions(colour=True)
    with pytest.warns(UserWarning, match="'nonsense', which is not known.*'full'"):
        set_printoptions(profile="nonsense")


# The comparison

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
ODD = st.sampled_from([NAN, INF, -INF, 0.0, -0.0, 1.0e-4, 1000.0, 1001.0, 1.0e8, 1.1e8, 0.5])


def real_values(size):
    """Draw size floats of one magnitude or of many, whole or not, odd ones among them."""
    scaled = st.builds(
        lambda values, power: [value * 10.0**power for value in values],
        st.lists(st.floats(-2.0, 2.0), min_size=size, max_size=size),
        st.integers(-30, 30),
    )
    kinds = [ODD, ODD | st.floats(-9.0, 9.0), st.integers(-2000, 2000).map(float), st.floats(-1.0e30, 1.0e30)]
    return st.one_of(scaled, *(st.lists(kind, min_size=size, max_size=size) for kind in kinds))


@st.composite
def cases(draw):
    """Draw (values, dtype name, shape)."""
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 7]), max_size=5).filter(lambda shape: math.prod(shape) < 200))
    size = math.prod(shape)
    dtype = draw(st.sampled_from((*FLOATS, *INTEGERS, "bool", "complex64", "complex128")))
    if dtype in FLOATS:
        return draw(real_values(size)), dtype, shape
    if dtype.startswith("complex"):
        return list(map(complex, draw(real_values(size)), draw(real_values(size)))), dtype, shape
    element = st.booleans() if dtype == "bool" else st.integers(0, 9) | st.integers(0, 127)
    return draw(st.lists(element, min_size=size, max_size=size)), dtype, shape


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 17),
        "threshold": st.sampled_from([0, 3, 10, 1000, INF]),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.integers(0, 130),
        "profile": st.sampled_from(["default", "short", "full"]),
        "sci_mode": st.booleans(),
    },
)


def build(library, values, dtype, shape, grad):
    """Make the same tensor with either library."""
    wide = "complex128" if dtype.startswith("complex") else "float64" if dtype in FLOATS else dtype
    tensor = library.tensor(values, dtype=getattr(library, wide)).to(getattr(library, dtype)).reshape(shape)
    if grad == "none" or not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    tensor = tensor.detach().requires_grad_(True)
    return tensor * 1 if grad == "node" else tensor


@needs_torch
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases(), options=OPTIONS, grad=st.sampled_from(["none", "none", "leaf", "node"]))
def test_text_equals_that_of_torch(case, options, grad):
    torch.set_printoptions(profile="default")
    set_printoptions(profile="default")
    try:
        torch.set_printoptions(**options)
        set_printoptions(**options)
        assert tensor_repr(build(tg, *case, grad)) == repr(build(torch, *case, grad))
    finally:
        torch.set_printoptions(profile="default")


@needs_torch
@pytest.mark.parametrize("shape", [(1000,), (1001,), (7, 150), (2, 600), (40, 3, 10), (1, 1, 1, 1001), (0, 2000)])
def test_summary_equals_that_of_torch(shape):
    ours, theirs = (library.arange(math.prod(shape)).reshape(shape) for library in (tg, torch))
    assert tensor_repr(ours) == repr(theirs)
    assert tensor_repr(ours / 7) == repr(theirs / 7)


def test_formats_of_sparse_and_meta_tensors():
    sparse = tg.eye(2).to_sparse()
    assert f"{sparse}" == str(sparse) and f"{tg.tensor(1.5).to_sparse():.2f}" == "1.50"
    meta = tg.ones((), device="meta")
    assert f"{meta}" == str(meta)
    for t in (sparse, meta, tg.eye(2).to_sparse_csr()):
        with pytest.raises(TypeError, match="unsupported format string"):
            f"{t:.2f}"
