"""torch.distributed under the alias: what a process can answer alone, and what it refuses.

The values and the kinds of errors are those of PyTorch 2.13 with a gloo group of one process, read side by side.
"""

import importlib

import pytest


@pytest.fixture
def dist(as_torch):
    module = importlib.import_module("torch.distributed")
    yield module
    if module.is_initialized():
        module.destroy_process_group()


@pytest.fixture
def alone(dist):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return dist


def test_without_a_group_the_package_is_there_and_collectives_are_refused(dist, as_torch):
    assert dist.is_available() and not dist.is_initialized() and dist.is_gloo_available()
    assert not (dist.is_nccl_available() or dist.is_mpi_available() or dist.is_torchelastic_launched())
    x = as_torch.ones(2)
    calls = [
        dist.get_rank,
        dist.get_world_size,
        dist.get_backend,
        dist.barrier,
        dist.new_group,
        lambda: dist.all_reduce(x),
        lambda: dist.all_gather([x.clone()], x),
        lambda: dist.broadcast(x, 0),
        lambda: dist.all_gather_object([None], 1),
        lambda: dist.nn.functional.all_reduce(x),
        lambda: as_torch.nn.parallel.DistributedDataParallel(as_torch.nn.Linear(2, 2)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()


@pytest.mark.parametrize(
    ("kind", "match", "arguments"),
    [
        (ValueError, "environment variable RANK expected", {}),
        (ValueError, "rank parameter missing", {"init_method": "file:///nowhere", "world_size": 1}),
        (AssertionError, "world_size be positive", {"store": True, "rank": 0}),
        (AssertionError, "both init_method and store", {"store": True, "init_method": "env://"}),
        (RuntimeError, "NCCL built in", {"backend": "nccl", "store": True, "rank": 0, "world_size": 1}),
        (AssertionError, "Unknown backend type odd", {"backend": "odd", "store": True, "rank": 0, "world_size": 1}),
        (RuntimeError, "rank is 1, expected 0", {"store": True, "rank": 1, "world_size": 1}),
        (NotImplementedError, "world_size is 2", {"store": True, "rank": 0, "world_size": 2}),
    ],
)
def test_a_group_that_is_not_of_one_process_is_refused(dist, monkeypatch, kind, match, arguments):
    monkeypatch.delenv("RANK", raising=False)
    store = {"store": dist.HashStore()} if arguments.get("store") else {}
    with pytest.raises(kind, match=match):
        dist.init_process_group(**{**arguments, **store})
    assert not dist.is_initialized()


def test_a_group_is_opened_by_what_the_environment_says(dist, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group("cpu:gloo,cuda:nccl")
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group()
    dist.destroy_process_group()
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(NotImplementedError, match="world_size is 4"):
        dist.init_process_group()


def test_groups_can_be_asked(alone, as_torch):
    made, outside = alone.new_group([0]), alone.GroupMember.NON_GROUP_MEMBER
    assert (alone.get_rank(), alone.get_world_size(), alone.get_backend()) == (0, 1, "gloo")
    assert (made.rank(), made.size(), alone.get_rank(made), alone.get_world_size(made)) == (0, 1, 0, 1)
    assert alone.get_rank(outside) == alone.get_world_size(outside) == -1
    assert alone.new_group([]) == outside and alone.all_reduce(as_torch.ones(1), group=outside) is None
    assert alone.get_process_group_ranks(made) == [0] and alone.get_global_rank(made, 0) == 0
    assert alone.group.WORLD.size() == 1 and alone.get_node_local_rank(fallback_rank=0) == 0
    assert isinstance(alone.ReduceOp.SUM, alone.ReduceOp) and alone.Backend("GLOO") == alone.Backend.GLOO
    with pytest.raises(ValueError, match="Rank 1 is out of range"):
        alone.new_group([0, 1])


# name: a function of (dist, torch, tensor x) that returns what was written
WRITTEN = {
    "all_reduce": lambda d, t, x: (d.all_reduce(x), x)[1],
    "reduce": lambda d, t, x: (d.reduce(x, 0), x)[1],
    "broadcast": lambda d, t, x: (d.broadcast(x, src=0), x)[1],
    "all_gather": lambda d, t, x: (d.all_gather(out := [t.empty_like(x)], x), out[0])[1],
    "all_gather_into_tensor": lambda d, t, x: (d.all_gather_into_tensor(out := t.empty(1, 4), x), out[0])[1],
    "gather": lambda d, t, x: (d.gather(x, out := [t.empty_like(x)], dst=0), out[0])[1],
    "scatter": lambda d, t, x: (d.scatter(out := t.empty_like(x), [x]), out)[1],
    "reduce_scatter": lambda d, t, x: (d.reduce_scatter(out := t.empty_like(x), [x]), out)[1],
    "reduce_scatter_tensor": lambda d, t, x: (d.reduce_scatter_tensor(out := t.empty_like(x), x), out)[1],
    "all_to_all": lambda d, t, x: (d.all_to_all(out := [t.empty_like(x)], [x]), out[0])[1],
    "all_to_all_single": lambda d, t, x: (d.all_to_all_single(out := t.empty_like(x), x, [4], [4]), out)[1],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_collective_of_one_writes_its_tensor(alone, as_torch, name):
    x = as_torch.arange(4.0)
    assert WRITTEN[name](alone, as_torch, x).tolist() == [0, 1, 2, 3]
    kept = as_torch.arange(4.0, requires_grad=True)
    assert WRITTEN[name](alone, as_torch, kept * 1).tolist() == [0, 1, 2, 3]


FAULTS = {
    "no tensor": (TypeError, "`tensor` of type", lambda d, t, x: d.all_reduce([1, 2])),
    "no list": (TypeError, "`tensor_list` of type", lambda d, t, x: d.all_gather(x, x)),
    "bits of floats": (RuntimeError, "ReduceOp.BAND", lambda d, t, x: d.all_reduce(x, d.ReduceOp.BAND)),
    "mean of ints": (RuntimeError, "ReduceOp.AVG", lambda d, t, x: d.all_reduce(x.long(), d.ReduceOp.AVG)),
    "two tensors": (RuntimeError, "2 entries, expected 1", lambda d, t, x: d.all_gather([x, x], x)),
    "a shape": (RuntimeError, r"expected \(4,\), got \(3,\)", lambda d, t, x: d.all_gather([x[:3]], x)),
    "a dtype": (ValueError, "different dtypes", lambda d, t, x: d.all_gather([x.int()], x)),
    "a root": (RuntimeError, "src is 1, expected 0", lambda d, t, x: d.broadcast(x, 1)),
    "no root": (ValueError, "Must specify global_rank", lambda d, t, x: d.broadcast(x)),
    "no gather_list": (ValueError, "``gather_list`` must be specified", lambda d, t, x: d.gather(x)),
    "no scatter_list": (ValueError, "``scatter_list`` must be specified", lambda d, t, x: d.scatter(x)),
    "split sizes": (RuntimeError, "Split sizes", lambda d, t, x: d.all_to_all_single(x, x, [3], [4])),
    "send to itself": (ValueError, "rank of the current process", lambda d, t, x: d.send(x, 0)),
    "receive": (ValueError, "is not there", lambda d, t, x: d.irecv(x, 1)),
    "two objects": (RuntimeError, "2 entries", lambda d, t, x: d.scatter_object_list([None], ["y", "z"])),
}


@pytest.mark.parametrize("name", FAULTS)
def test_collectives_check_what_they_are_given(alone, as_torch, name):
    kind, match, call = FAULTS[name]
    with pytest.raises(kind, match=match):
        call(alone, as_torch, as_torch.arange(4.0))


def test_a_collective_that_is_not_waited_for_is_done(alone, as_torch):
    work = alone.all_reduce(as_torch.ones(2), async_op=True)
    assert work.wait() and work.is_completed() and work.result()[0].tolist() == [1, 1]
    assert work.get_future().wait()[0].tolist() == [1, 1]
    assert alone.barrier() is None and alone.monitored_barrier() is None


def test_objects_are_handed_over_as_copies(alone):
    given, found = {"a": [1]}, [None]
    alone.all_gather_object(found, given)
    assert found == [given] and found[0]["a"] is not given["a"]
    alone.gather_object("b", found)
    assert found == ["b"]
    alone.scatter_object_list(found, ["c"])
    assert found == ["c"] and alone.broadcast_object_list(found, src=0) is None


WITH_GRADIENTS = {
    "all_reduce": lambda f, t, x: f.all_reduce(x),
    "reduce": lambda f, t, x: f.reduce(x, 0),
    "broadcast": lambda f, t, x: f.broadcast(x, 0),
    "all_gather": lambda f, t, x: f.all_gather(x)[0],
    "gather": lambda f, t, x: f.gather(x)[0],
    "scatter": lambda f, t, x: f.scatter([x]),
    "reduce_scatter": lambda f, t, x: f.reduce_scatter(t.zeros(3), [x]),
    "all_to_all": lambda f, t, x: f.all_to_all([t.zeros(3)], [x])[0],
    "all_to_all_single": lambda f, t, x: f.all_to_all_single(t.zeros(3), x),
}


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_collectives_with_gradients_are_copies(alone, as_torch, name):
    w = as_torch.ones(3, requires_grad=True)
    found = WITH_GRADIENTS[name](alone.nn.functional, as_torch, w * 2)
    assert found.tolist() == [2, 2, 2] and as_torch.autograd.grad(found.pow(2).sum(), w)[0].tolist() == [8, 8, 8]


def test_a_function_of_libraries_that_gathers_has_its_gradient(alone, as_torch):
    class Gather(as_torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = [as_torch.empty_like(x) for _ in range(alone.get_world_size())]
            alone.all_gather(out, x)
            return tuple(out)

        @staticmethod
        def backward(ctx, *grads):
            total = as_torch.stack(grads)
            alone.all_reduce(total)
            return total[alone.get_rank()]

    w = as_torch.ones(3, requires_grad=True)
    total = as_torch.cat(Gather.apply(w * 3)).pow(2).sum()
    assert as_torch.autograd.grad(total, w)[0].tolist() == [18, 18, 18]


def test_a_model_in_a_group_of_one_is_the_model(alone, as_torch):
    parallel = importlib.import_module("torch.nn.parallel.distributed")
    model = as_torch.nn.Linear(2, 2)
    wrapped = as_torch.nn.parallel.DistributedDataParallel(model)
    assert not isinstance(wrapped, as_torch.nn.DataParallel)  # libraries tell the two apart, and skip its __init__
    assert type(wrapped) is parallel.DistributedDataParallel and "module.weight" in wrapped.state_dict()
    with wrapped.no_sync():
        assert not wrapped.require_backward_grad_sync
        wrapped(as_torch.ones(1, 2)).sum().backward()
    assert wrapped.require_backward_grad_sync and model.weight.grad.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(RuntimeError, match="any parameter that requires a gradient"):
        parallel.DistributedDataParallel(as_torch.nn.ReLU())
    with pytest.raises(ValueError, match="expected None"):
        parallel.DistributedDataParallel(model, device_ids=[0])
    with pytest.raises(NotImplementedError, match="gradients are not sent"):
        wrapped.register_comm_hook(None, None)


def test_a_sampler_asks_the_group(dist, as_torch):
    sampler = as_torch.utils.data.DistributedSampler
    with pytest.raises(RuntimeError, match="pass num_replicas and rank"):
        sampler(range(3))
    dist.init_process_group(rank=0, world_size=1, init_method="tcp://nowhere:1")
    assert list(sampler(range(3), shuffle=False)) == [0, 1, 2]
    assert list(sampler(range(4), num_replicas=2, rank=1, shuffle=False)) == [1, 3]


def test_a_store_holds_values_for_its_process(dist):
    store = dist.HashStore()
    store.set("a", "b")
    assert (store.get("a"), store.add("n", 2), store.add("n", 3), store.get("n")) == (b"b", 2, 5, b"5")
    assert (store.num_keys(), store.delete_key("a"), store.check(["a"]), store.check(["n"])) == (2, True, False, True)
    assert store.compare_set("n", "5", "9") == b"9" == store.compare_set("n", "5", "1")
    assert store.wait(["n"]) is None
    with pytest.raises(RuntimeError, match="no 'zz'"):
        store.get("zz")
    with pytest.raises(NotImplementedError, match="TCPStore"):
        dist.TCPStore("localhost", 1)
