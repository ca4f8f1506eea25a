"""Whatever a device's memory and kernels return or raise ends in a result or an error, and never the process."""

import contextlib
import copy
import ctypes

import pytest
from collecting import collect

import tinygrad_ext as tg
from tests.helpers.devices import Memory, by_cpu, on
from tinygrad_ext import library

# ---- memory


class Lying(tuple):
    def __getitem__(self, i):
        return 4096


class Unprintable:
    def __repr__(self):
        raise ValueError("no text")


@pytest.mark.parametrize(
    "got",
    [(2**63, None), (2**63 - 2, None), (2**70, None), (True, None), Lying((1, None)), Unprintable(), [4096, None]],
)
def test_an_address_that_is_none_is_told(memory, got):
    memory.allocate = lambda nbytes: got
    with pytest.raises(TypeError, match=r"allocate\(4\) of the device example:0 must return \(address, owner\)"):
        tg.zeros(1, device="example")


def test_a_block_that_can_be_seen_to_be_too_small_is_refused(memory):
    memory.allocate = lambda nbytes: (4096, bytearray(nbytes - 1))
    with pytest.raises(RuntimeError, match=r"allocate\(8\) of the device example:0 returned a block of 7 bytes"):
        tg.zeros(2, device="example")


@pytest.mark.parametrize("error", [MemoryError("full"), KeyError(1), KeyboardInterrupt()])
@pytest.mark.parametrize(
    "method, call",
    [
        ("allocate", lambda x: tg.zeros(2, device="example")),
        ("allocate", lambda x: x.clone()),
        ("allocate", lambda x: copy.deepcopy(x)),
        ("allocate", lambda x: x.resize_(9)),
        ("write", lambda x: tg.ones(2).to("example")),
        ("write", lambda x: x.fill_(1)),
        ("read", lambda x: x.cpu()),
        ("read", lambda x: x[0].item()),
        ("read", lambda x: repr(x)),
        ("read", lambda x: x.tolist()),
        ("read", lambda x: tg.ones(2).copy_(x)),
    ],
)
def test_what_memory_raises_arrives_and_the_tensor_stays_as_it_was(memory, method, call, error):
    def broken(*args):
        raise error

    x = on([1.0, 2.0])
    setattr(memory, method, broken)
    with pytest.raises(type(error)):
        call(x)
    delattr(memory, method)
    assert x.shape == (2,) and x.cpu().shape == (2,)


def test_what_read_leaves_out_is_zero(memory):
    x = on([1.0, 2.0])
    memory.read = lambda address, into: None
    assert x.tolist() == [0, 0]


@pytest.mark.parametrize("keep", [memoryview, lambda view: (ctypes.c_char * len(view)).from_buffer(view)])
def test_memory_that_is_kept_beyond_the_call_stays_readable(memory, keep):
    kept = []
    x = on([1.0, 2.0])
    memory.read = lambda address, into: kept.append(keep(into))
    x.cpu()
    collect()
    fresh = [tg.ones(2) for _ in range(50)]
    assert bytes(kept[0]) == bytes(8) and len(fresh) == 50


def test_methods_that_change_the_tensor_they_serve_do_no_harm(memory):
    x = on([1.0, 2.0, 3.0])

    def read(address, into):
        x.resize_(0)
        into.release()

    memory.read = read
    assert x.cpu().tolist() == [0, 0, 0] and x.shape == (0,)


def test_one_block_for_all_tensors_is_the_plugins_own_affair(memory):
    block = memory.allocate(64)
    memory.allocate = lambda nbytes: block
    x, y = on([1.0, 2.0]), on([3.0, 4.0])
    assert x.tolist() == y.tolist() == [3, 4]


def test_an_owner_is_let_go_once(memory):
    freed = []

    class Owner:
        def __del__(self):
            freed.append(self)

    allocate = memory.allocate
    memory.allocate = lambda nbytes: (allocate(nbytes)[0], Owner())
    memory.read = memory.write = lambda address, data: None
    x = tg.zeros(4, device="example")
    y, z = copy.deepcopy([x, x[1:]])
    x.resize_(9)
    del x, y
    collect()
    assert len(freed) == 2
    del z
    collect()
    assert len(freed) == 3


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_owner_whose_end_fails_harms_nobody(memory):
    class Owner:
        def __del__(self):
            raise OSError("the card is gone")

    memory.allocate = lambda nbytes: (4096, Owner())
    memory.write = lambda address, data: None
    tg.zeros(4, device="example")
    collect()


def test_memory_of_a_device_that_was_replaced_is_read_by_what_allocated_it():
    with library.Library("aten", "IMPL") as first:
        library.register_device("example", Memory(), lib=first)
        x = on([1.0, 2.0])
    with library.Library("aten", "IMPL") as second:
        library.register_device("example", Memory(), lib=second)
        second.impl("exp", by_cpu(tg.exp), "example")
        y = on([3.0, 4.0])
        assert x.data_ptr() == y.data_ptr() and x.tolist() == [1, 2] and y.tolist() == [3, 4]
        with pytest.raises(RuntimeError, match="before the device went and came back"):
            x.exp()


# ---- names


@pytest.mark.parametrize("name", ["cpu", "meta", "cuda", "mps"])
def test_a_name_that_is_taken_shadows_nothing(lib, name):
    with pytest.raises(RuntimeError, match=f"there is a device '{name}' already"):
        library.register_device(name, Memory(), lib=lib)
    assert tg.ones(2, device="cpu").tolist() == [1, 1]


def test_tensors_go_from_one_device_to_another(memory, lib):
    library.register_device("second", Memory(), lib=lib)
    x = on([[1.0, 2.0], [3.0, 4.0]])
    there = x.t().to("second")
    assert there.device.type == "second" and there.tolist() == [[1, 3], [2, 4]]
    there.copy_(x)
    assert there.tolist() == x.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(RuntimeError, match="two devices, example:0 and second:0"):
        tg.cat([x, there])
    for mixed in ((x, tg.ones(2, 2, device="meta")), (tg.ones(2, 2, device="meta"), x)):
        with pytest.raises(RuntimeError, match="two devices"):
            tg.add(*mixed)


# ---- kernels


@pytest.mark.parametrize(
    "kernel, words",
    [
        (lambda x: None, "must return a tensor, not NoneType"),
        (lambda x: 3.0, "must return a tensor, not float"),
        (lambda x: [x], "must return a tensor, not list of 1"),
        (lambda x: x.cpu(), "returned a tensor on cpu"),
        (lambda x: x.to("meta"), "returned a tensor on meta"),
        (lambda x: x[:1], r"a tensor of torch.float32 and shape \[2\], not one of torch.float32 and shape \[1\]"),
        (lambda x: x.double(), r"a tensor of torch.float32 and shape \[2\], not one of torch.float64 and shape \[2\]"),
    ],
)
def test_a_result_that_is_none_is_refused_in_every_form(memory, lib, kernel, words):
    lib.impl("exp", kernel, "example")
    x = on([0.0, 0.0])
    for call in (x.exp, x.exp_, x.clone().requires_grad_().exp, lambda: tg.exp(x, out=tg.empty(2, device="example"))):
        with pytest.raises((RuntimeError, TypeError), match=words):
            call()
    assert x.tolist() == [0, 0]


@pytest.mark.parametrize("kernel", [lambda *a: a[0], lambda *a: (a[0],), lambda *a: (a[0],) * 3, lambda *a: (None, 1)])
def test_a_wrong_number_or_kind_of_results_is_refused(memory, lib, kernel):
    lib.impl("max.dim", kernel, "example")
    for x in (on([[1.0, 2.0]]), on([[1.0, 2.0]]).requires_grad_()):
        with pytest.raises((TypeError, RuntimeError), match="aten::max.dim: the kernel of the device example:0"):
            x.max(0)


def test_arguments_are_judged_before_the_kernel_sees_them(memory, lib):
    kernel = by_cpu(tg.add)
    lib.impl("add.Tensor", kernel, "example")
    with pytest.raises(RuntimeError, match="size of tensor a"):
        on([1.0, 2.0]) + on([1.0, 2.0, 3.0])
    assert kernel.calls == 0


def test_a_kernel_that_returns_its_argument_hangs_no_history_on_it(memory, lib):
    lib.impl("relu", lambda x: x, "example")
    lib.impl("threshold_backward", lambda grad, x, threshold: grad, "example")
    x = on([1.0, 2.0]).requires_grad_()
    y = x.relu().relu()
    y.backward(on([3.0, 4.0]))
    assert y is not x and x.is_leaf and x.grad.tolist() == [3, 4]


def test_a_kernel_that_returns_one_tensor_for_all_calls_mixes_no_histories(memory, lib):
    kept = on([5.0]).requires_grad_()
    lib.impl("exp", lambda x: kept, "example")
    a, b = on([1.0]).requires_grad_(), on([2.0])
    first, second = a.exp(), b.exp()
    assert first.grad_fn is not None and not second.requires_grad and kept.grad_fn is None


def test_a_kernel_that_fails_leaves_the_threads_state_as_it_was(memory, lib):
    def fails(x):
        tg.set_grad_enabled(False)
        raise ZeroDivisionError

    lib.impl("exp", fails, "example")
    with pytest.raises(ZeroDivisionError):
        on([1.0]).exp()
    assert tg.is_grad_enabled()


def test_a_kernel_may_change_its_argument_or_end_its_device():
    with library.Library("aten", "IMPL") as lib:
        library.register_device("example", Memory(), lib=lib)
        x = on([1.0, 2.0])
        with contextlib.ExitStack() as stack:
            inner = stack.enter_context(library.Library("aten", "IMPL"))
            inner.impl("exp", lambda t: (t.resize_(0), t.clone())[1], "example")
            with pytest.raises(TypeError, match=r"shape \[2\], not one of torch.float32 and shape \[0\]"):
                x.exp()
            inner.impl("sin", lambda t: (stack.close(), lib._destroy(), t)[2], "example")
            gone = on([1.0]).sin()
    with pytest.raises(RuntimeError, match="is gone"):
        gone.cpu()


def test_a_kernel_for_what_is_no_op_or_no_function_is_refused(memory, lib):
    with pytest.raises(RuntimeError, match="there is no op 'aten::nothing'"):
        lib.impl("nothing", lambda x: x, "example")
    with pytest.raises(TypeError, match="must be a function, not int"):
        lib.impl("exp", 3, "example")


def test_a_list_that_tells_each_reader_something_else_does_no_harm(memory, lib):
    class Shifty(list):
        def __iter__(self):
            return iter([tg.ones(1), tg.ones(1)])

    lib.impl("cat", lambda tensors, dim: on([1.0]), "example")
    for call in (lambda s: tg.cat(s), lambda s: tg.cat(s, out=tg.empty(2)), lambda s: tg.cat(s, out=on([1.0]))):
        with contextlib.suppress(RuntimeError, TypeError):
            call(Shifty([on([1.0]), on([2.0])]))


# ---- copies of tensors


def test_a_deepcopy_shares_what_was_shared_and_keeps_grad_and_attributes(memory):
    x = on([1.0, 2.0]).requires_grad_()
    x.grad, x.note = on([3.0, 4.0]), "kept"
    y, part = copy.deepcopy([x, x.detach()[1:]])
    with tg.no_grad():
        y.fill_(7)
    assert part.tolist() == [7] and x.tolist() == [1, 2] and y.grad.tolist() == [3, 4] and y.note == "kept"


def test_views_that_must_copy_do_so_on_the_device(memory):
    x = on([[1.0, 2.0], [3.0, 4.0]])
    for made in (x.t().reshape(4), x.t().flatten(), x.t().ravel(), x.t().contiguous().view(4)):
        assert made.device == x.device and made.tolist() == [1, 3, 2, 4]
    images = tg.rand(2, 3, 4, 5)
    there = images.to("example").contiguous(memory_format=tg.channels_last)
    assert there.is_contiguous(memory_format=tg.channels_last) and tg.equal(there.cpu(), images)


def test_resizing_keeps_what_was_there(memory):
    x = on([1.0, 2.0, 3.0])
    assert x[1:].resize_(4).tolist()[:2] == [2, 3] and x.resize_(2).tolist() == [1, 2]
    assert tg.empty(0, device="example").resize_(3).device == x.device


def test_what_is_drawn_like_a_tensor_is_made_where_it_is_asked_for(memory):
    tg.manual_seed(0)
    wanted = tg.rand_like(tg.ones(3))
    for like, device in ((on([1.0, 1.0, 1.0]), None), (tg.ones(3), "example")):
        tg.manual_seed(0)
        made = tg.rand_like(like, device=device)
        assert made.device.type == "example" and tg.equal(made.cpu(), wanted)
    assert tg.rand_like(on([1.0]), device="cpu").is_cpu
