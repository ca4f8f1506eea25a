"""Settings of the process that a test leaves changed for those after it: told where it ends, whatever the order."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import backends, multiprocessing

ASKED = [
    "get_default_dtype",
    "get_default_device",
    "get_num_threads",
    "get_printoptions",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_anomaly_enabled",
    "is_anomaly_check_nan_enabled",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_warn_always_enabled",
]
SWITCHES = [
    (module, name)
    for module in (backends.cudnn, backends.mkldnn)
    for name, value in vars(module).items()
    if isinstance(value, bool)
]
BEFORE = pytest.StashKey()


def settings():
    """What the process is set to, by the names that say it."""
    now = {name: getattr(tg, name)() for name in ASKED}
    now["get_sharing_strategy"] = multiprocessing.get_sharing_strategy()
    return now | {f"{module.__name__}.{name}": getattr(module, name) for module, name in SWITCHES}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.stash[BEFORE] = settings()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """After its fixtures are gone, and those of its module where it is the last test there."""
    result = yield
    before, now = item.stash[BEFORE], settings()
    changed = [f"{name}: {was} became {now[name]}" for name, was in before.items() if was != now[name]]
    assert not changed, f"the test leaves the process otherwise than it was, {'; '.join(changed)}: put that back"
    return result


@pytest.fixture
def switches_put_back(monkeypatch):
    """What a statement of a library sets is as it was when the test ends."""
    for module, name in [*SWITCHES, (multiprocessing, "_strategy")]:
        monkeypatch.setattr(module, name, getattr(module, name))
    precision, mode = tg.get_float32_matmul_precision(), tg.get_deterministic_debug_mode()
    yield
    tg.set_deterministic_debug_mode(mode)
    tg.set_float32_matmul_precision(precision)
