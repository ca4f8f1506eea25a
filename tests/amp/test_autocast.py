"""autocast converts the arguments of the operations that its lists name, and of no others, wherever they are called."""

import importlib.util
import threading
import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext import amp, jit, nn
from tinygrad_ext.amp import op_lists
from tinygrad_ext.func import vmap

ONES = tg.ones(3, 3)


def cpu(dtype=None, **kwargs):
    return tg.autocast("cpu", dtype, **kwargs)


@pytest.mark.parametrize("dtype", [tg.bfloat16, tg.float16])
def test_products_are_computed_in_lower_precision_and_losses_in_float32(dtype):
    x, half = tg.rand(3, 3), tg.rand(3, 3).to(dtype)
    with cpu(dtype):
        assert (x @ x).dtype is dtype and nn.functional.linear(x, x).dtype is dtype
        assert nn.functional.mse_loss(half, half).dtype is tg.float32 and half.prod().dtype is tg.float32
        assert (x + x).dtype is tg.float32 and (half + half).dtype is dtype and half.exp().dtype is dtype
        assert tg.equal(x @ x, x.to(dtype) @ x.to(dtype))
    assert (x @ x).dtype is tg.float32


def test_tensors_of_one_dtype_get_the_widest():
    half = ONES.bfloat16()
    with cpu():
        assert tg.cat([half, half]).dtype is tg.bfloat16 and tg.stack([half, ONES]).dtype is tg.float32


def test_float64_integers_and_inplace_forms_take_no_part():
    out = tg.empty(3, 3)
    with cpu():
        assert (ONES.double() @ ONES.double()).dtype is tg.float64 and (ONES.long() @ ONES.long()).dtype is tg.int64
        assert tg.mm(ONES, ONES, out=out) is out and ONES.clone().addmm_(ONES, ONES).dtype is tg.float32


def test_contexts_nest_and_the_inner_one_counts():
    with cpu():
        with cpu(enabled=False):
            assert (ONES @ ONES).dtype is tg.float32 and not tg.is_autocast_enabled("cpu")
            with cpu(tg.float16):
                assert (ONES @ ONES).dtype is tg.float16 and tg.get_autocast_dtype("cpu") is tg.float16
        assert (ONES @ ONES).dtype is tg.bfloat16 and tg.get_autocast_cpu_dtype() is tg.bfloat16
    assert not tg.is_autocast_cpu_enabled() and tg.autocast_increment_nesting() == 1
    assert tg.autocast_decrement_nesting() == 0


def test_it_ends_where_something_raises_and_decorates_functions():
    with pytest.raises(KeyError), cpu():
        raise KeyError
    assert (ONES @ ONES).dtype is tg.float32
    product = cpu()(lambda: ONES @ ONES)
    assert product().dtype is tg.bfloat16 and (ONES @ ONES).dtype is tg.float32
    mode = amp._enter_autocast("cpu")
    assert (ONES @ ONES).dtype is tg.bfloat16
    amp._exit_autocast(mode)
    assert (ONES @ ONES).dtype is tg.float32


def test_it_is_set_without_a_context_and_per_thread():
    tg.set_autocast_cpu_enabled(True)
    try:
        seen = []
        thread = threading.Thread(target=lambda: seen.append((ONES @ ONES).dtype))
        thread.start()
        thread.join()
        assert (ONES @ ONES).dtype is tg.bfloat16 and seen == [tg.float32]
    finally:
        tg.set_autocast_enabled("cpu", False)
    assert (ONES @ ONES).dtype is tg.float32


def test_gradients_have_the_dtype_of_the_parameters():
    layer = nn.Linear(3, 2)
    with cpu():
        layer(ONES).float().sum().backward()
    assert layer.weight.grad.dtype is tg.float32 and layer.weight.grad.tolist() == [[3.0] * 3] * 2


def test_a_parameter_is_converted_once_until_it_is_written_to():
    weight = nn.Parameter(tg.ones(3, 3))
    with cpu():
        first, again = ONES @ weight, ONES @ weight
        kept = first.grad_fn.next_functions[1][0]
        assert kept is again.grad_fn.next_functions[1][0]
        with tg.no_grad():
            weight.mul_(2)
        assert (ONES @ weight).tolist() == [[6.0] * 3] * 3
        with tg.no_grad():
            ONES @ weight
        assert (ONES @ weight).requires_grad
    assert not amp.state.state.cache
    with cpu(cache_enabled=False):
        one, two = ONES @ weight, ONES @ weight
        assert one.grad_fn.next_functions[1][0] is not two.grad_fn.next_functions[1][0]


class Square(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x

    @staticmethod
    def backward(ctx, grad):
        return grad


class Cast(tg.autograd.Function):
    seen = []

    @staticmethod
    @amp.custom_fwd(device_type="cpu", cast_inputs=tg.float16)
    def forward(ctx, x, scale):
        Cast.seen.append((x.dtype, tg.is_autocast_enabled("cpu")))
        return x * scale

    @staticmethod
    @amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        Cast.seen.append((grad.dtype, tg.is_autocast_enabled("cpu")))
        return grad.float(), None


class Same(tg.autograd.Function):
    @staticmethod
    @amp.custom_fwd(device_type="cpu")
    def forward(ctx, x):
        return x @ x

    @staticmethod
    @amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        assert tg.is_autocast_enabled("cpu") and (grad @ grad).dtype is tg.bfloat16
        return grad.float()


def test_the_inside_of_a_function_is_seen():
    with cpu():
        assert Square.apply(ONES).dtype is tg.bfloat16


class Apart(tg.autograd.Function):
    """A forward without a ctx, whose own casts have nothing to keep what they find in."""

    generate_vmap_rule = True

    @staticmethod
    @amp.custom_fwd(device_type="cpu", cast_inputs=tg.float16)
    def forward(x):
        Cast.seen.append((x.dtype, tg.is_autocast_enabled("cpu")))
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad.to(ctx.saved_tensors[0].dtype)


@pytest.mark.parametrize("way", [lambda f: f, tg.compile, lambda f: tg.func.vmap(f)])
def test_a_forward_without_a_ctx_may_have_casts_of_its_own(way):
    Cast.seen.clear()
    x = tg.ones(2, 2, requires_grad=True)
    with cpu():
        made = way(lambda x: Apart.apply(x))(x)
    made.sum().backward()
    assert set(Cast.seen) == {(tg.float16, False)} and made.dtype is tg.float16
    assert x.grad.tolist() == [[2, 2], [2, 2]] and not hasattr(x, "_fwd_used_autocast")


def test_a_functions_own_casts_turn_it_off_inside():
    Cast.seen.clear()
    x = tg.ones(2, requires_grad=True)
    with cpu():
        made = Cast.apply(x, 2.0)
    made.sum().backward()
    assert Cast.seen == [(tg.float16, False)] * 2 and x.grad.dtype is tg.float32
    assert Cast.apply(tg.ones(2), 2.0).dtype is tg.float32


def test_backward_runs_as_forward_did():
    x = tg.ones(2, 2, requires_grad=True)
    with cpu():
        made = Same.apply(x)
    made.sum().backward()
    assert made.dtype is tg.bfloat16 and x.grad is not None


def test_a_trace_holds_the_conversions():
    def program(x):
        with cpu():
            return x @ x

    graph = jit.trace(program, ONES)
    assert graph(ONES).dtype is tg.bfloat16 and tg.equal(graph(ONES * 2), program(ONES * 2))


def test_it_works_inside_and_outside_of_transforms():
    rows = tg.rand(4, 3)
    with cpu():
        outside = vmap(lambda r: ONES @ r)(rows)
    inside = vmap(cpu()(lambda r: ONES @ r))(rows)
    assert outside.dtype is inside.dtype is tg.bfloat16 and tg.equal(outside, inside)


def test_bad_arguments_are_refused():
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        tg.autocast("meta")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        tg.autocast(3)
    with pytest.raises(TypeError, match="argument 'dtype' must be a dtype"):
        tg.autocast("cpu", "bfloat16")
    with pytest.warns(UserWarning, match="target dtype is not supported"), tg.autocast("cpu", tg.float64):
        assert not tg.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        tg.get_autocast_dtype("meta")
    with pytest.raises(TypeError, match="'device_type' must be str"):
        amp.is_autocast_available(1)
    assert amp.is_autocast_available("cpu") and amp.is_autocast_available("cuda")
    assert not amp.is_autocast_available("meta")


def test_no_op_stands_in_two_lists():
    assert not op_lists.LOWER & op_lists.FLOAT32 and not (op_lists.LOWER | op_lists.FLOAT32) & op_lists.WIDEST


DIFFERENT = {"inner": "of two vectors PyTorch calls dot, which is in no list; here all ranks are a matmul"}


@pytest.mark.skipif(
    importlib.util.find_spec("expecttest") is None, reason="PyTorch's table of samples is not installed"
)
def test_results_have_the_dtypes_that_they_have_in_pytorch():
    torch = pytest.importorskip("torch")
    from tests.helpers.pytorchs_tables import op_db
    from tests.test_pytorch_samples import function_of, ours
    from tinygrad_ext.testing.compare import flatten

    listed, wrong, compared = op_lists.LOWER | op_lists.FLOAT32 | op_lists.WIDEST, [], 0
    for entry in op_db:
        name = entry.name.rpartition(".")[2]
        if not {name, entry.name.replace(".", "_"), name.replace("cross_entropy", "cross_entropy_loss")} & listed:
            continue
        if function_of(entry) is None or entry.name in DIFFERENT or torch.float32 not in entry.dtypes:
            continue
        if entry.name.startswith("sparse."):
            continue  # such layouts are a package's
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what PyTorch warns of once a process
            sample = next(iter(entry.sample_inputs("cpu", torch.float32)))
            inputs = ours((sample.input, sample.args, sample.kwargs))
            with torch.autocast("cpu", torch.bfloat16):
                want = entry(sample.input, *sample.args, **sample.kwargs)
        try:
            with cpu(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "A window was not provided")  # PyTorch says it too
                got = function_of(entry)(inputs[0], *inputs[1], **inputs[2])
        except AttributeError:  # the entry calls a function by a name that is not here
            continue
        pair = [[str(t.dtype) for t in flatten(r) if hasattr(t, "dtype")] for r in (got, want)]
        compared += 1
        if pair[0] != pair[1]:
            wrong.append((entry.formatted_name, *pair))
    assert not wrong and compared > 30


@pytest.mark.parametrize("kind, lower", [("LSTM", True), ("GRU", False), ("RNN", True)])
def test_recurrent_layers_run_and_learn(kind, lower):
    layer, x = getattr(tg.nn, kind)(3, 4, 2, bidirectional=True), tg.rand(5, 2, 3)
    plain = layer(x)[0]
    with cpu():
        out, _ = layer(x)
        loss = out.float().square().mean()
    loss.backward()
    assert out.dtype is (tg.bfloat16 if lower else tg.float32)
    assert tg.allclose(out.float(), plain, atol=2e-2)
    assert all(p.grad is not None and p.grad.dtype is tg.float32 for p in layer.parameters())


def test_losses_and_samplings_of_halves_are_of_float32():
    half = tg.rand(2, 3).bfloat16()
    image, grid = tg.rand(1, 1, 2, 2).bfloat16(), tg.zeros(1, 2, 2, 2).bfloat16()
    with cpu():
        assert tg.nn.functional.cross_entropy(half, tg.tensor([1, 2])).dtype is tg.float32
        assert tg.nn.functional.grid_sample(image, grid, align_corners=True).dtype is tg.float32
        assert tg.conv_tbc(tg.ones(4, 1, 3), tg.ones(2, 3, 5), tg.ones(5)).dtype is tg.bfloat16


def test_functions_decorated_for_a_gpu_run_on_the_cpu_as_they_are():
    class Doubled(tg.autograd.Function):
        @staticmethod
        @tg.cuda.amp.custom_fwd(cast_inputs=tg.float16)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @tg.cuda.amp.custom_bwd
        def backward(ctx, grad):
            return grad * 2

    x = tg.ones(2, requires_grad=True)
    y = Doubled.apply(x)
    y.sum().backward()
    assert y.dtype == tg.float32 and x.grad.tolist() == [2, 2]
    assert tg.cuda.amp.amp_definitely_not_available()


def test_the_dtype_of_a_gpu_can_be_asked_and_set():
    before = tg.get_autocast_gpu_dtype()
    try:
        tg.set_autocast_gpu_dtype(tg.bfloat16)
        assert tg.get_autocast_gpu_dtype() == tg.get_autocast_dtype("cuda") == tg.bfloat16
    finally:
        tg.set_autocast_gpu_dtype(before)
