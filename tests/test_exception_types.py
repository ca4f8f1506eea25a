"""Bad calls raise the type that PyTorch raises: libraries catch it, so a wrong type is a wrong answer."""

import warnings

import pytest

import tinygrad_ext as tg

CONVERSIONS = """
float(t.ones(2))|int(t.ones(2))|complex(t.ones(2))|float(t.ones(0))|float(t.ones(1, 2))|t.ones(2).__complex__()
t.ones(2).item()|t.ones(2, 2).item()|bool(t.ones(2))|bool(t.ones(0))|t.ones(2).__index__()|t.tensor(1.5).__index__()
t.tensor([1, 2]).__index__()|t.tensor(1j).__index__()|[1, 2, 3][t.tensor(1.0)]|range(t.tensor(3.0))
float(t.tensor(1j))|int(t.tensor(1j))|int(t.tensor(float("nan")))|int(t.tensor(float("inf")))
float(t.ones(2, device="meta"))|float(t.ones((), device="meta"))|len(t.ones(()))|list(t.ones(()))|hex(t.tensor(1.0))
math.ceil(t.tensor([1.5, 2]))|"{:.2f}".format(t.ones(2))
"""
OPERATORS = """
~t.ones(2)|~t.ones(2, dtype=t.complex64)|-t.tensor([True])|t.ones(2) & t.ones(2)|t.ones(2) | 1|t.ones(2) ^ 1
t.ones(2) << 1.5
t.ones(2, dtype=t.complex64) < 1|t.ones(2, 2) @ 3|t.ones(2) + "x"|t.ones(2) + None|t.ones(2)["x"]|t.ones(2)[5]
"""
FLAGS = """
t.ones(2).requires_grad_("x")|t.ones(2).requires_grad_(1)|t.ones(2).requires_grad_(None)
t.ones(2).requires_grad_(x=True)
t.ones(2, dtype=t.int64).requires_grad_()|setattr(t.ones(2), "requires_grad", "x")
setattr(t.ones(2), "requires_grad", 1)
setattr(t.ones(2), "requires_grad", None)|setattr(t.ones(2), "grad", 1)|setattr(t.ones(2), "data", 1)
t.ones(2, requires_grad="x")|nn.Parameter(t.ones(2), "x")|nn.Parameter(t.ones(2), 1)|t.set_grad_enabled("x")
t.set_grad_enabled(1)|nn.Linear(1, 1).requires_grad_("x")|t.ones(2).retain_grad()|t.ones(2).backward()
"""
LAYERS = """
F.hardtanh(t.ones(2), 2, 1)|F.hardtanh(t.ones(0), 2, 1)|F.hardtanh(t.ones(2), 2, 1, True)|nn.Hardtanh(2, 1)
F.dropout(t.ones(2), 1.5)|F.dropout(t.ones(2), -0.5)|F.dropout(t.ones(2), "x")|F.glu(t.ones(3))|F.glu(t.ones(()))
F.gelu(t.ones(2), approximate="x")|F.softmax(t.ones(2), 5)|F.elu(t.ones(2), alpha=t.ones(2))|F.threshold(t.ones(2))
F.max_pool2d(t.ones(2), 2)|F.max_pool2d(t.ones(1, 2, 3, 3), "x")|F.max_pool2d(t.ones(1, 2, 3, 3), 5)
F.max_pool2d(t.ones(1, 2, 3, 3), (1, 2, 3))|F.max_pool2d(t.ones(1, 2, 3, 3), 2, padding=2)
F.max_pool2d(t.ones(1, 2, 3, 3), 0)
F.conv2d(t.ones(1, 2, 3, 3), t.ones(1, 1, 3, 3))|F.conv2d(t.ones(3), t.ones(1, 1, 3, 3))
F.linear(t.ones(2), t.ones(3, 3))
F.embedding(t.ones(2), t.ones(3, 3))|F.embedding(t.tensor([5]), t.ones(3, 3))|F.one_hot(t.tensor([5]), 3)
F.cross_entropy(t.ones(2, 3), t.tensor([0]))|F.cross_entropy(t.ones(2, 3), t.tensor([0, 5]))
F.cross_entropy(t.ones(2, 3), t.tensor([0, 1]), reduction="x")|F.layer_norm(t.ones(2, 3), (2,))
F.batch_norm(t.ones(2, 3), None, None)|F.batch_norm(t.ones(1, 3), None, None, training=True)
F.group_norm(t.ones(2, 3), 2)
F.pad(t.ones(2), (1,))|F.pad(t.ones(2), (1, 1), mode="x")|F.pad(t.ones(2), (1, 1), mode="reflect")
"""
ADAPTIVE = """
F.adaptive_avg_pool2d(t.ones(2, 2), (1, 1))|F.adaptive_avg_pool3d(t.ones(2), (1, 1, 1))
F.adaptive_max_pool2d(t.ones(2), (1, 1))
F.adaptive_avg_pool1d(t.ones(2), 1)|F.adaptive_max_pool1d(t.ones(2), 1)|F.adaptive_max_pool2d(t.ones(2, 2), 1)
F.adaptive_max_pool3d(t.ones(2, 2), 1)|F.adaptive_max_pool2d(t.ones(1, 2, 3, 3), 1.5)
F.adaptive_max_pool2d(t.ones(1, 2, 3, 3), None)
F.adaptive_avg_pool2d(t.ones(1, 2, 3, 3), "nuc")|F.adaptive_avg_pool2d(t.ones(1, 2, 3, 3), 1.5)
F.adaptive_avg_pool2d(t.ones(1, 2, 3, 3), None)|F.adaptive_avg_pool2d(t.ones(1, 2, 3, 3), (1, "x"))
F.adaptive_avg_pool2d(t.ones(1, 2, 3, 3), (1, 2, 3))|F.adaptive_avg_pool2d(t.ones(1, 2, 3, 3), -1)
F.adaptive_max_pool2d(t.ones(1, 2, 3, 3), "nuc")|nn.AdaptiveAvgPool2d("nuc")(t.ones(1, 2, 3, 3))
F.adaptive_avg_pool1d(t.ones(1, 2, 3), "x")|F.adaptive_avg_pool1d(t.ones(1, 2, 3), 1.5)
F.adaptive_avg_pool1d(t.ones(1, 2, 3), (1, 2))
F.adaptive_avg_pool3d(t.ones(1, 2, 3, 3, 3), "x")|F.adaptive_avg_pool3d(t.ones(1, 2, 3, 3, 3), (1, 2))
"""
SHAPES = """
t.broadcast_shapes((2,), (3,))|t.broadcast_shapes((-1,))|t.broadcast_shapes((0,), (2,))|t.broadcast_shapes(1.5)
t.broadcast_shapes((1.5,))|t.broadcast_shapes("a")|t.ops.nowhere.op
t.max(t.ones(2), t.zeros(2), out=(t.ones(2), t.ones(2)))
t.add(t.ones(2), t.ones(2), t.ones(2))|t.addmm(t.ones(2, 2), t.ones(2, 2), t.ones(2, 2), t.ones(2, 2))
t.ones(2).add(1, 2, 3)
"""
CALLS = [
    call for table in (CONVERSIONS, OPERATORS, FLAGS, LAYERS, ADAPTIVE, SHAPES) for call in table.strip().splitlines()
]
CALLS = [part for line in CALLS for part in line.replace(" | ", " %or% ").split("|")]


def error_of(lib, call):
    import math

    names = {"t": lib, "nn": lib.nn, "F": lib.nn.functional, "math": math}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eval(call.replace(" %or% ", " | "), names)
        except Exception as error:
            return type(error)
    return None


@pytest.mark.parametrize("call", CALLS)
def test_the_type_of_the_exception_is_pytorchs(call):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    wanted = error_of(torch, call)
    assert wanted is not None, "a call of this table is a bad one"
    assert error_of(tg, call) is wanted


def test_matplotlib_draws_filled_contours_of_tensors():
    plt = pytest.importorskip("matplotlib", reason="draws") and pytest.importorskip("matplotlib.figure")
    x = tg.linspace(-1, 1, 5)
    axes = plt.Figure().add_subplot()
    drawn = axes.contourf(x, x, x[:, None] * x[None, :], levels=tg.linspace(-1, 1, 4))
    assert drawn.levels.tolist() == pytest.approx([-1, -1 / 3, 1 / 3, 1])
