"""Whole programs as users write them give the same eager, scripted and from an archive, gradients included."""

import copy
import importlib.util
import io
import sys
import warnings
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tests.helpers import script_programs as table
from tinygrad_ext import jit

FOLDER = Path(__file__).parent / "programs" / "users"


def _programs(path):
    spec = importlib.util.spec_from_file_location(f"user_programs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.CASES


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _state = tg.get_rng_state()
    PROGRAMS = {name: (made, rows) for path in sorted(FOLDER.glob("*.py")) for name, made, rows in _programs(path)}
    tg.set_rng_state(_state)


def tensors_in(value):
    if isinstance(value, tg.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(part)


def told(function, row):
    """What a call gives or raises, and the gradients of its arguments and parameters."""
    row = copy.deepcopy(row)
    leaves = [t.requires_grad_() for t in tensors_in(row) if t.dtype == tg.float32]
    if isinstance(function, tg.nn.Module):
        function.zero_grad()
        leaves += function.parameters()
    try:
        result = function(*row)
    except Exception as error:
        return "raises", str(error.args[0])[:30]  # a message may go on with a size, which is a list in script
    sums = [t.sum() for t in tensors_in(result) if t.requires_grad]
    if sums:
        sum(sums[1:], sums[0]).backward()
    return "gives", table.plain([result]), [None if t.grad is None else t.grad.tolist() for t in leaves]


@pytest.mark.parametrize("name", PROGRAMS)
def test_eager_script_and_archive_agree_with_their_gradients(name):
    made, rows = PROGRAMS[name]
    tg.manual_seed(0)
    eager = made() if isinstance(made, type) else made
    scripted = jit.script(copy.deepcopy(eager) if isinstance(made, type) else eager)
    file = io.BytesIO()
    jit.save(scripted, file)
    file.seek(0)
    loaded = jit.load(file)
    for row in rows:
        row = row if isinstance(row, tuple) else (row,)
        expected = told(eager, row)
        assert repr(told(scripted, row)) == repr(expected) == repr(told(loaded, row))
