"""What a case is made of: the seed alone; every op in every form; and judges that see each kind of fault."""

import resource
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext.core.call import interop as core
from tools.fuzz import __main__ as command
from tools.fuzz import ops, values
from tools.fuzz.case import Fault, generator, module_of, refused
from tools.fuzz.operands import Watched, tensors, touch
from tools.fuzz.worker import MEMORY

pytestmark = pytest.mark.filterwarnings("ignore")  # as in a worker


@pytest.mark.parametrize("target", command.SHARES)
def test_the_same_number_is_the_same_case(target):
    module = module_of(target)
    for number in range(20):
        one, two = (module.case(generator(target, 3, number)).text() for _ in range(2))
        assert one and one == two


@pytest.fixture
def bounded_memory():
    """As much as a worker has, on top of what the process uses: a case may ask for any size."""
    statm, was = Path("/proc/self/statm"), resource.getrlimit(resource.RLIMIT_AS)
    if statm.exists():
        used = int(statm.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, was[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, was)


@pytest.mark.parametrize("target", [t for t in command.SHARES if t != "threads"])
def test_a_few_cases_of_each_target_pass(target, bounded_memory):
    module = module_of(target)
    for number in range(30):
        module.case(generator(target, 5, number)).run()


def test_every_form_of_every_op_can_be_called():
    for op in ops.TABLE:
        forms = ops._forms(op)
        assert forms, op.name
        for form in forms:
            assert callable(ops._found(ops._spelling(op, form))), (op.name, form)


def test_private_ops_are_among_them():
    assert {"aten::_slice", "aten::_gather_backward", "aten::index.Tensor"} <= {op.name for op in ops.TABLE}


def test_operands_come_in_every_dtype_rank_and_layout():
    rng = generator("ops", 1, 1)
    made = [values.laid_out(rng, values.tensor(rng)) for _ in range(4000)]
    assert {t.dtype for t in made} == set(values.DTYPES)
    assert {t.dim() for t in made} >= {0, 1, 2, 3, 4, 5, 64}
    assert any(t.is_meta for t in made) and any(0 in t.shape for t in made)
    assert any(0 in t.stride() and t.numel() > 1 for t in made), "expanded"
    assert any(t.storage_offset() for t in made), "offset"
    assert any(max(t.stride(), default=0) > 2**60 for t in made), "strides that are not used"
    assert any(t.dim() > 1 and t.stride(-1) > t.stride(0) > 0 for t in made), "transposed"


def test_some_calls_write_into_their_own_inputs():
    def shares(call):
        outs = [core.storage_of(t) for t in tensors(call.kwargs.get("out")) if not t.is_meta]
        return any(core.storage_of(t) is room for t in tensors(call.args) for room in outs)

    calls = [ops.case(generator("ops", 1, n)) for n in range(600)]
    assert any(map(shares, calls))
    assert any(c.form == "inplace" for c in calls)
    assert any(len(v) > 64 for c in calls for v in c.args if isinstance(v, (list, tuple)))


# ---- the judges


@pytest.mark.parametrize(
    "error",
    [SystemError("x"), AssertionError("x"), MemoryError("x"), KeyError("x"), RuntimeError(""), ValueError("internal")],
    ids=repr,
)
def test_no_other_exception_passes(error):
    with pytest.raises(Fault):
        refused(error)


def test_clean_refusals_pass():
    for error in (RuntimeError("a"), TypeError("a"), IndexError("a"), NotImplementedError("a")):
        refused(error)
    refused(MemoryError("a"), small=False)


def test_a_write_that_nobody_declared_is_seen():
    x, y = tg.ones(3), tg.ones(3)
    watched = Watched([x, y], [y])
    y.add_(1)
    watched.check()
    x[1] = 5
    with pytest.raises(Fault, match="changed"):
        watched.check()


def test_changed_geometry_is_seen():
    x = tg.ones(4)
    watched = Watched([x], [])
    x.resize_(2)
    with pytest.raises(Fault, match="geometry"):
        watched.check()


def test_a_result_beyond_its_storage_is_seen():
    class Strided(tg.Tensor):
        def stride(self):  # what a kernel that sets a wrong stride would give
            return (9,)

    x = tg.ones(4)
    touch([x, {"a": (x,)}])
    with pytest.raises(Fault, match="in a storage of"):
        touch([x, {"a": (x.as_subclass(Strided),)}])
