"""A device of a plugin: memory whose addresses mean nothing here, copies, kernels by rows, refusals by name."""

import contextlib
import copy
import pickle

import pytest
from collecting import collect

import tinygrad_ext as tg
from tests.helpers.devices import Memory, by_cpu, on
from tinygrad_ext import library, registry
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.testing import sweep

# ---- where tensors are


def test_a_tensor_goes_there_and_back(memory):
    x = tg.arange(6, dtype=tg.float32).reshape(2, 3)
    there = x.to("example")
    assert there.device == tg.device("example", 0) and str(there.device) == "example:0" and not there.is_cpu
    assert there.to("example:0") is there
    assert tg.equal(there.cpu(), x) and tg.equal(there.to(x), x)
    assert there.to(tg.int64).dtype == tg.int64 and there.to("cpu", tg.int64).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("dtype", [tg.bool, tg.uint8, tg.float16, tg.bfloat16, tg.float64, tg.complex128])
def test_every_kind_of_element_arrives(memory, dtype):
    x = tg.tensor([[0, 1, 3]], dtype=dtype)
    assert x.to("example").dtype is dtype and tg.equal(x.to("example").cpu(), x)


def test_views_share_the_memory_of_the_device(memory):
    x = on([[1.0, 2.0], [3.0, 4.0]])
    x.t()[0].copy_(tg.tensor([7.0, 8.0]))
    assert x.tolist() == [[7, 2], [8, 4]]
    x[:, 1].fill_(0)
    assert x.tolist() == [[7, 0], [8, 0]] and x.t().contiguous().tolist() == [[7, 8], [0, 0]]
    assert x.as_strided((3,), (1,), 1).tolist() == [0, 8, 0]
    with pytest.raises(RuntimeError, match="as_strided"):
        x.as_strided((9,), (1,))


def test_factories_make_their_elements_there(memory):
    for made, wanted in (
        (tg.zeros(2, device="example"), [0, 0]),
        (tg.full((2,), 3, device="example"), [3, 3]),
        (tg.arange(3, device=tg.device("example")), [0, 1, 2]),
        (tg.tensor([1, 2], device="example"), [1, 2]),
        (tg.ones_like(on([5.0])), [1]),
        (on([5.0]).new_zeros(2), [0, 0]),
        (tg.zeros(2).to("example").zero_(), [0, 0]),
    ):
        assert made.device.type == "example" and made.tolist() == wanted
    with tg.device("example"):
        assert tg.eye(2).device.type == "example"
    tg.manual_seed(0)
    drawn = tg.rand(4, device="example")
    tg.manual_seed(0)
    assert tg.equal(drawn.cpu(), tg.rand(4))


def test_values_are_read_by_copies(memory):
    x = on([[1.5, 0.0]])
    assert x[0, 0].item() == float(x[0, 0]) == 1.5 and bool(x[0, 0]) and x.tolist() == [[1.5, 0.0]]
    assert repr(x) == "tensor([[1.5000, 0.0000]], device='example:0')"
    assert tg.equal(copy.deepcopy(x).cpu(), x.cpu()) and copy.deepcopy(x).data_ptr() != x.data_ptr()


def test_memory_goes_with_the_last_tensor(memory):
    x = tg.zeros(1000, device="example")
    view = x[10:]
    del x
    collect()
    assert len(memory.blocks) == 1
    del view
    collect()
    assert len(memory.blocks) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.numpy(),
        lambda x: memoryview(x),
        lambda x: x.__dlpack__(),
        lambda x: x.__dlpack_device__(),
        lambda x: pickle.dumps(x),
        lambda x: tg.from_dlpack(x),
    ],
)
def test_what_needs_memory_of_this_process_names_the_device_or_the_way_out(memory, call):
    with pytest.raises((TypeError, BufferError, NotImplementedError), match=r"cpu\(\)"):
        call(on([1.0]))


def test_nothing_comes_out_of_meta(memory):
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        tg.zeros(2, device="meta").to("example")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        on([1.0, 2.0]).copy_(tg.zeros(2, device="meta"))
    assert on([1.0]).to("meta").is_meta


# ---- kernels


def test_a_kernel_serves_function_operator_method_in_place_and_out(memory, lib):
    kernel = by_cpu(tg.add)
    lib.impl("add.Tensor", kernel, "example")
    x = on([1.0, 2.0])
    assert (x + x).tolist() == [2, 4] and tg.add(x, 1, alpha=2).tolist() == [3, 4] and (1 + x).tolist() == [2, 3]
    assert x.add_(1) is x and x.tolist() == [2, 3]
    out = tg.empty(0, device="example")
    assert tg.add(x, x, out=out) is out and out.tolist() == [4, 6] and kernel.calls == 5
    assert (tg.ones(2) + 1).tolist() == [2, 2] and kernel.calls == 5


def test_numbers_of_the_cpu_go_with_any_device(memory, lib):
    lib.impl("mul.Tensor", by_cpu(tg.mul), "example")
    assert (on([1.0, 2.0]) * tg.tensor(3.0)).tolist() == [3, 6]


def test_gradients_pass_from_device_to_device(memory, lib):
    for name, op in (("mul.Tensor", tg.mul), ("mul_conj", tg.mul), ("sum", tg.sum), ("add.Tensor", tg.add)):
        lib.impl(name, by_cpu(op), "example")
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    leaf = on([3.0, 4.0]).requires_grad_()
    (w.to("example") * leaf * leaf).sum().backward()
    assert w.grad.device.type == "cpu" and w.grad.tolist() == [9, 16]
    assert leaf.grad.device.type == "example" and leaf.grad.tolist() == [6, 16]


def test_ops_of_plugins_have_kernels_by_device_too(memory):
    @library.custom_op("devtest::twice", mutates_args=(), device_types="cpu")
    def twice(x: tg.Tensor) -> tg.Tensor:
        return x * 2

    try:
        with pytest.raises(
            NotImplementedError, match="Could not run 'devtest::twice' with arguments from the 'example'"
        ):
            twice(on([1.0]))
        twice.register_kernel("example", lambda x: (x.cpu() * 2).to("example"))
        assert twice(on([1.0])).tolist() == [2] and twice(tg.ones(1)).tolist() == [2]
    finally:
        library.undefine("devtest::twice")


# ---- refusals


def test_an_op_without_a_kernel_says_which_op_device_and_owner_and_what_to_do(memory):
    with pytest.raises(NotImplementedError) as error:
        on([1.0]).exp()
    assert str(error.value) == (
        "Could not run 'aten::exp' with arguments from the 'example' backend: this program, which brings the device, "
        "has no kernel for it. Register one, library.impl('aten::exp', 'example', function), or compute on the cpu, "
        "tensor.cpu()."
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x + y,
        lambda x, y: y.add_(x),
        lambda x, y: x @ y,
        lambda x, y: tg.cat([x, y]),
        lambda x, y: tg.where(y > 0, x, x),
    ],
)
def test_mixed_devices_are_refused_in_pytorchs_words(memory, call):
    two = "(example:0 and cpu|cpu and example:0)!"
    words = f"Expected all tensors to be on the same device, but found at least two devices, {two}"
    with pytest.raises(RuntimeError, match=words):
        call(on([[1.0]]), tg.ones(1, 1))


def test_a_target_on_another_device_is_refused(memory, lib):
    lib.impl("exp", by_cpu(tg.exp), "example")
    with pytest.raises(RuntimeError, match="Expected out tensor to have device example:0, but got cpu instead"):
        tg.exp(on([1.0]), out=tg.empty(1))
    with pytest.raises(RuntimeError, match="Expected out tensor to have device cpu, but got example:0 instead"):
        tg.exp(tg.ones(1), out=tg.empty(1, device="example"))


def test_a_kernel_that_returns_a_tensor_of_another_device_is_told(memory, lib):
    lib.impl("exp", lambda x: x.cpu().exp(), "example")
    with pytest.raises(RuntimeError, match="the kernel of the device example:0 returned a tensor on cpu"):
        on([1.0]).exp()


def test_what_cannot_have_a_kernel_says_why(memory, lib):
    for name, device, words in (
        ("view", "example", "needs no kernel"),
        ("clone", "example", "needs no kernel"),
        ("to.dtype", "example", "written in other ops"),
        ("exp", "cpu", "devices that were brought"),
        ("exp", "nowhere", "devices that were brought"),
    ):
        with pytest.raises(RuntimeError, match=words):
            lib.impl(name, lambda *args: None, device)
    lib.impl("exp", by_cpu(tg.exp), "example")
    with pytest.raises(RuntimeError, match="there is a kernel for the device 'example' already"):
        lib.impl("exp", by_cpu(tg.exp), "example")


def test_names_and_memories_are_judged(memory, lib):
    for name in ("example", "cpu", "cuda"):
        with pytest.raises(RuntimeError, match=f"there is a device '{name}' already"):
            library.register_device(name, Memory(), lib=lib)
    with pytest.raises(ValueError, match="small letters"):
        library.register_device("Example:0", Memory(), lib=lib)
    with pytest.raises(TypeError, match="has no allocate"):
        library.register_device("other", object(), lib=lib)
    with pytest.raises(RuntimeError, match="there is one device 'example', whose index is 0"):
        tg.zeros(1, device="example:1")


@pytest.mark.parametrize("got", [None, (0, None), (-1, None), ("a", None), (1.5, None), (4096,)])
def test_an_allocation_that_is_none_is_told(memory, got):
    memory.allocate = lambda nbytes: got
    with pytest.raises(TypeError, match=r"allocate\(4\) of the device example:0 must return \(address, owner\)"):
        tg.zeros(1, device="example")


def test_the_bytes_that_are_lent_for_a_copy_end_with_it(memory):
    kept = []
    memory.write = lambda address, data: kept.append(data)
    tg.zeros(1).to("example")
    with pytest.raises(ValueError, match="released"):
        bytes(kept[0])


def test_a_device_that_is_gone_takes_its_kernels_along():
    with library.Library("aten", "IMPL") as lib:
        library.register_device("example", Memory(), lib=lib)
        lib.impl("exp", by_cpu(tg.exp), "example")
        x = on([1.0])
    with pytest.raises(RuntimeError, match="Expected one of cpu, meta, cuda"):
        tg.device("example")
    with pytest.raises(RuntimeError, match="the device example:0 is gone"):
        x.cpu()
    with pytest.raises(RuntimeError, match="the device example:0 is gone"):
        x.exp()


def test_indices_of_the_cpu_go_with_tensors_on_any_device(memory, lib):
    lib.impl("index.Tensor", lambda x, indices: x.cpu()[indices[0].cpu()].to("example"), "example")
    x = on([1.0, 2.0, 3.0])
    assert x[[0, 2]].tolist() == x[tg.tensor([0, 2])].tolist() == x[on([0, 2])].tolist() == [1, 3]
    assert x[tg.tensor([True, False, True])].tolist() == [1, 3]


def test_every_op_computes_as_on_the_cpu_or_refuses(memory):
    """Whatever read an address as one of this process would end it."""
    served, refused = [], 0
    for op, sample in sampled():
        wanted = sweep.call(op, sample.args, sample.kwargs)
        try:
            got = sweep.call(op, moved(sample.args), moved(sample.kwargs))
        except NotImplementedError:
            refused += 1
        else:
            served.append(op.name)
            assert text(got) == text(wanted), op.name
    assert "aten::to.device" in served and "aten::expand" in served and refused > 200


def test_with_a_kernel_for_every_op_results_and_gradients_are_those_of_the_cpu(memory, lib):
    for name, op in registry.ops.items():
        if op.record.owner == BUILTIN:
            with contextlib.suppress(RuntimeError):  # those that need none
                lib.impl(name.partition("::")[2], on_cpu(op), "example")
    compared = 0
    for op, sample in sampled():
        assert text(sweep.call(op, moved(sample.args), moved(sample.kwargs))) == text(
            sweep.call(op, sample.args, sample.kwargs)
        ), op.name
        wanted = gradient(op, sample.args, sample.kwargs)
        if wanted is not None:
            assert text(gradient(op, moved(sample.args), moved(sample.kwargs))) == text(wanted), op.name
            compared += 1
    assert compared > 100


def sampled():
    """Ops whose results are the same each time, each with a sample."""
    for op in sweep.ops():
        if op.record.owner == BUILTIN and not sweep.is_random(op) and "random" not in op.record.source:
            for sample in list(sweep.samples(op, next(iter(sweep.supported(op)), "float32")))[:1]:
                yield op, sample


def on_cpu(op):
    """A kernel that calls the op there."""
    overload = getattr(getattr(tg.ops.aten, op.schema.name), op.schema.overload or "default")
    return lambda *args, **kwargs: moved(overload(*moved(args, "cpu"), **moved(kwargs, "cpu")))


def gradient(op, args, kwargs):
    """That of the sum of the result with respect to the first argument; None where there is none."""
    if not args or not isinstance(args[0], tg.Tensor) or not args[0].dtype.is_floating_point:
        return None
    x = args[0].detach().clone().requires_grad_()
    result = sweep.call(op, [x, *args[1:]], kwargs)
    if not isinstance(result, tg.Tensor) or not result.requires_grad:
        return None
    with contextlib.suppress(NotImplementedError):  # igamma has none by its first argument
        result.backward(tg.ones_like(result))
    return x.grad


def moved(o, device="example"):
    """An argument or result with its tensors there, and said to be made there."""
    if isinstance(o, tg.Tensor):
        return o.detach().to(device)
    if isinstance(o, tg.device):
        return tg.device(device)
    if isinstance(o, dict):
        return {key: moved(value, device) for key, value in o.items()}
    if isinstance(o, (list, tuple)):
        row = [moved(item, device) for item in o]
        return tuple(row) if isinstance(o, tuple) else row
    return o


def text(o):
    """What a result says, wherever it is."""
    if isinstance(o, tg.Tensor):
        return f"{o.shape} {o.dtype} {o.cpu().tolist()}"
    return str([text(item) for item in o]) if isinstance(o, (list, tuple)) else repr(o)


def test_what_is_written_to_is_where_the_rest_is():
    x, places, one = tg.zeros(3), tg.empty(1, dtype=tg.int64, device="meta"), tg.ones(1)
    for call in (
        lambda: x.put(places, one),
        lambda: x.index_add(0, places, one),
        lambda: x.index_fill(0, places, 1.0),
        lambda: x.index_copy(0, places, one),
        lambda: x.scatter(0, places, 1.0),
        lambda: x.index_put((places,), one),
    ):
        with pytest.raises(RuntimeError, match="on the same device"):
            call()
