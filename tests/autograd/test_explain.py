"""autograd.explain: where a gradient goes and where it is lost, told without changing anything."""

import gc
import weakref
from xml.etree import ElementTree

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, explain


def leaf(*values):
    return tg.tensor(values, requires_grad=True)


def line_of(fn, offset=1):
    return f"test_explain.py:{fn.__code__.co_firstlineno + offset}"


# ---- a gradient that arrives ---------------------------------------------------------------------------------------


def test_the_path_is_told_with_lines_and_norms():
    x = leaf(3.0, 4.0)

    def loss():
        return (x * 2).sum()

    told = explain(loss(), x)
    assert told.connected and not told.problems and told.grad.tolist() == [2.0, 2.0]
    assert [s.name for s in told.steps] == ["SumBackward0", "MulBackward0", "AccumulateGrad"]
    assert line_of(loss) in told.steps[0].place
    assert [round(s.arrived.norm, 4) for s in told.steps] == [1.0, 1.4142, 2.8284]
    assert [(name, to) for name, to, _ in told.steps[1].edges] == [("self", 2)]
    text = str(told)
    assert "arrives with norm 2.828" in text and "-> #2 2.828" in text and repr(told) == text


def test_all_paths_are_told():
    x = leaf(1.0)
    h = x.exp()
    told = explain(h * h.sigmoid(), x)
    assert [s.name for s in told.steps] == ["MulBackward0", "SigmoidBackward0", "ExpBackward0", "AccumulateGrad"]
    assert sorted(to for _, to, _ in told.steps[0].edges) == [1, 2]
    (g,) = tg.autograd.grad((x.exp() * x.exp().sigmoid()), x)
    assert told.grad.item() == pytest.approx(g.item())


def test_branches_off_the_path_are_left_out():
    x, w = leaf(1.0), leaf(2.0)
    told = explain(x * w.exp(), x)
    assert [s.name for s in told.steps] == ["MulBackward0", "AccumulateGrad"]


def test_the_input_may_be_inside_the_graph_and_the_output_of_any_shape():
    x = leaf(1.0, 2.0)
    h = x * 3
    told = explain(h * h, h, tg.tensor([1.0, 10.0]))
    assert told.grad.tolist() == [6.0, 120.0] and told.steps[-1].name == "MulBackward0"
    assert explain(h * h, h).grad.tolist() == [6.0, 12.0]
    assert explain(x, x).grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("value", [1e30, 1e-30])
def test_norms_neither_overflow_nor_vanish(value):
    x = tg.tensor([1.0], dtype=tg.float64, requires_grad=True)
    told = explain(x * value * value * value * value * value * value, x)
    assert told.steps[-1].arrived.norm == pytest.approx(value**6, rel=1e-6)


# ---- a gradient that gets lost -------------------------------------------------------------------------------------


def only(told):
    return "\n".join(told.problems)


def test_where_it_becomes_zero():
    x = leaf(-1.0, -2.0)

    def hidden():
        return x.relu()

    told = explain((hidden() * 3).sum(), x)
    assert "from ReluBackward0" in told.problems[0] and line_of(hidden) in told.problems[0]
    assert "all zero" in told.problems[0] and "the gradient of the input is all zero" in told.problems[1]


def test_where_it_becomes_nan_or_infinite():
    x = leaf(0.0, 1.0)
    assert "from SqrtBackward0" in only(explain((x.sqrt() * 0).sum(), x)) and "has NaN" in only(
        explain((x.sqrt() * 0).sum(), x)
    )
    told = explain(x.sqrt().sum(), x)
    assert "from SqrtBackward0" in told.problems[0] and "is infinite" in told.problems[0]


def test_where_it_becomes_none():
    class Stops(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return None

    x = leaf(1.0)
    told = explain(Stops.apply(x * 2), x)
    assert told.connected and told.grad is None
    assert "from StopsBackward" in told.problems[0] and "'x' is None" in told.problems[0]


@pytest.mark.parametrize("error", [ValueError("no idea"), NotImplementedError("later")])
def test_where_backward_raises(error):
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise error

    x = leaf(1.0)
    told = explain(Fails.apply(x).sum(), x)
    assert told.problems[0].startswith("cut at FailsBackward") and str(error) in told.problems[0]
    assert told.grad is None and "FAILED" in str(told)
    (x * 2).backward()
    assert x.grad.item() == 2.0


def test_once_differentiable_is_told():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @tg.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    x = leaf(3.0)
    (g,) = tg.autograd.grad(Once.apply(x), x, create_graph=True)
    told = only(explain(g, x))
    assert "once_differentiable" in told and line_of(test_once_differentiable_is_told, 13) in told


def test_a_view_that_a_function_wrote_to_has_its_line():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(3.0, 4.0)
    y = x * 1
    Double.apply(y[:1])
    told = str(explain(y.sum(), x))
    assert "unknown line" not in told and line_of(test_a_view_that_a_function_wrote_to_has_its_line, 13) in told


def test_a_freed_graph_is_told():
    x = leaf(1.0)
    y = x.exp()
    y.backward()
    assert "a second time" in only(explain(y, x))


# ---- no path -------------------------------------------------------------------------------------------------------


def test_a_detached_tensor_is_found():
    x, w = leaf(1.0), leaf(2.0)
    h = x * 2

    def cut(h):
        return h.detach()

    told = explain((cut(h) * w).sum(), x)
    assert not told.connected and told.grad is None
    assert "not in the graph of the output, whose last op is SumBackward0" in told.problems[0]
    assert f"detach() at {__file__}:{cut.__code__.co_firstlineno + 1} in cut" in told.problems[1]
    del h
    assert "detach()" in only(explain(cut_free(x, w), x))


def cut_free(x, w):
    return ((x * 2).detach() * w).sum()


def test_memory_of_the_input_is_recognised():
    x, w = leaf(1.0), leaf(2.0)
    assert "in the input's own memory" in only(explain(x.data * w, x))
    assert "own memory" in only(explain(x.detach(), x))


def test_ops_without_derivative_and_integer_outputs_are_told():
    x, w = leaf(1.0, 2.0), leaf(1.0)
    assert "argmax()" in only(explain(x.argmax() * w, x))
    assert "carries no gradient" in only(explain(x.argmax(), x))


def test_grad_mode_off_is_told():
    x = leaf(1.0)
    with tg.no_grad():
        y = x * 2
    assert "grad mode off" in only(explain(y, x))


def test_an_input_that_needs_no_gradient_is_told():
    w = leaf(1.0)
    assert "does not require grad" in only(explain(w * 2, tg.ones(1)))
    assert "only floating point" in only(explain(w * 2, tg.ones(1, dtype=tg.int64)))


def test_the_packages_own_detaching_is_no_cut():
    x, w = leaf(1.0), leaf(2.0)

    def look():
        str(x), x.sum().backward()
        tg.nn.utils.clip_grad_norm_([x], 1.0)

    look()
    assert "in look" not in only(explain(w * 2, x))


def test_of_cuts_whose_argument_is_gone_only_those_of_the_same_files_are_told():
    x, w = leaf(1.0), leaf(2.0)
    exec(compile("(x * 2).detach()", "elsewhere.py", "exec"), {"x": x})
    assert "elsewhere.py" not in only(explain(w * 2, x))


# ---- nothing is changed --------------------------------------------------------------------------------------------


def test_graph_gradients_and_hooks_are_left_alone():
    x, seen = leaf(1.0), []
    h = x * 2
    h.register_hook(lambda g: seen.append("tensor"))
    h.retain_grad()
    x.register_hook(lambda g: seen.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated"))
    y = h.exp()
    y.grad_fn.register_hook(lambda *a: seen.append("node"))
    told = explain(y, x)
    assert seen == [] and x.grad is None and h.grad is None
    assert "has hooks, not run" in str(told)
    y.backward()
    assert seen == ["node", "tensor", "leaf", "accumulated"] and x.grad is not None and h.grad is not None


def test_the_random_stream_goes_on_as_before():
    class Draws(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * tg.rand(1)

    x = leaf(1.0)
    y = Draws.apply(x)
    tg.manual_seed(3)
    want = tg.rand(2).tolist()
    tg.manual_seed(3)
    explain(y, x)
    assert tg.rand(2).tolist() == want


def test_saved_tensors_that_can_be_read_once_are_not_read():
    class Once(Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = leaf(5.0)
    y = Once.apply(x)
    told = explain(y, x)
    assert told.connected and "read once only" in only(told)
    y.backward()
    assert x.grad.item() == 5.0


def test_an_explanation_keeps_no_graph():
    collect()
    gc.disable()
    try:
        x = leaf(1.0)
        y = x.exp()
        told = explain(y, x)
        node = weakref.ref(y.grad_fn)
        del x, y
        assert node() is None and told.connected
    finally:
        gc.enable()


def test_wrong_arguments_are_refused():
    x = leaf(1.0)
    with pytest.raises(TypeError, match="argument 'output' must be Tensor, not int"):
        explain(3, x)
    with pytest.raises(TypeError, match="argument 'input' must be Tensor, not NoneType"):
        explain(x, None)
    for bad in (tg.ones(2), "text"):
        with pytest.raises(RuntimeError, match="Mismatch in shape"):
            explain(x * 2, x, bad)


# ---- text and picture ----------------------------------------------------------------------------------------------


def long_chain(n):
    x = leaf(1.0)
    y = x
    for _ in range(n):
        y = y + 1
        y = y * 1
    return y, x


def test_loops_are_folded_in_text_and_picture():
    y, x = leaf(1.0), None
    x = y
    for _ in range(300):
        y = y + 1
    told = explain(y, x)
    assert len(told.steps) == 301 and len(str(told).splitlines()) < 12 and "... 29" in str(told)
    assert told.svg().count("<rect") < 8 and "nodes" in told.svg()


@pytest.mark.parametrize("n", [1, 40, 3000])
def test_long_graphs_stay_readable(n):
    told = explain(*long_chain(n))
    assert len(str(told).splitlines()) < 60
    assert len(told.svg()) < 40_000


def test_a_wide_ladder_is_shortened():
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y * y.sigmoid()
    told = explain(y, x)
    assert told.svg().count("<rect") < 80 and "more nodes" in told.svg()


def pictures():
    x, w = leaf(1.0, 2.0), leaf(2.0)
    yield explain((x * x.sigmoid() + x).sum(), x)
    yield explain((x.detach() * w).sum(), x)
    yield explain(tg.ones(1), x)
    yield explain(x, x)
    yield explain((x.sqrt() * 0).sum(), x)
    yield explain((x * w).sum(), w * 2)


def test_pictures_are_valid_svg_with_every_step(tmp_path):
    for told in pictures():
        root = ElementTree.fromstring(told.svg())
        assert root.tag.endswith("svg") and float(root.get("width")) > 0
        text = "".join(root.itertext())
        for step in told.steps:
            assert step.name.removesuffix("Backward0") in text or "input" in text
        assert told._repr_html_() == told.svg()
    told.save(tmp_path / "path.svg")
    assert (tmp_path / "path.svg").read_text(encoding="utf-8") == told.svg()
    told.save(str(tmp_path / "path.txt"))
    assert (tmp_path / "path.txt").read_text(encoding="utf-8") == str(told)


def test_boxes_do_not_overlap():
    x = leaf(1.0)
    y = sum((x * k).sigmoid() for k in range(6)) + x
    root = ElementTree.fromstring(explain(y, x).svg())
    boxes = [
        (float(r.get("x")), float(r.get("y")), float(r.get("width")), float(r.get("height")))
        for r in root.iter("{http://www.w3.org/2000/svg}rect")
        if r.get("x")
    ]
    assert len(boxes) > 10
    for i, (x1, y1, w, h) in enumerate(boxes):
        for x2, y2, _, _ in boxes[i + 1 :]:
            assert abs(x1 - x2) >= w or abs(y1 - y2) >= h
