"""The list of PyTorch's public names is PyTorch's, its marks are true, and errors speak by it."""

import difflib
import json
import subprocess
import sys

import pytest

import tinygrad_ext as tg
from tools import torch_names as tool

ROOT = tool.ROOT
LISTED = json.loads(tool.DATA.read_text())["names"]


def alone(code):
    """What code prints in a process of its own: what other tests import and register would show."""
    command = [sys.executable, "-c", f"import json; from tools import torch_names as tool; {code}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_marks_and_the_page_are_fresh():
    text = alone("print(tool.render(), end='')")
    assert tool.DATA.read_text() == text, "run make docs"
    assert tool.PAGE.read_text() == tool.page(json.loads(text)), "run make docs"
    assert tool.DIFFERENCES.read_text() == tool.counted(tool.DIFFERENCES.read_text(), json.loads(text)), "run make docs"


def test_counts_need_their_place():
    with pytest.raises(ValueError, match="for the counts to stand between"):
        tool.counted("no marks", json.loads(tool.DATA.read_text()))


@pytest.mark.skipif(tool.installed() is None, reason=f"PyTorch {tool.VERSION} for CPUs is not installed: make compare")
@pytest.mark.slow
def test_the_names_are_those_of_the_installed_pytorch():
    listed = {place: sorted(f"{m['present']} {m['absent']}".split()) for place, m in LISTED.items()}
    assert listed == json.loads(alone("print(json.dumps(tool.read()))")), "run make docs"


def test_the_list_is_whole_and_honest():
    assert set(LISTED) >= {f"torch.{place}" for place in ("Tensor", "nn", "linalg", "fft", "distributions", "jit")}
    present, absent = LISTED["torch"]["present"].split(), LISTED["torch"]["absent"].split()
    assert {"add", "float32", "Tensor", "nn", "no_grad"} <= set(present)
    assert all(hasattr(tg, name) for name in present) and not set(present) & set(absent)
    # a name that only raises NotImplementedError is not there
    assert "get_kernel" in LISTED["torch.library"]["absent"].split()


def message(call, error):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


PLACES = ("", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "autograd", "linalg", "utils", "utils.data")


def absent(place):
    return [n for n in LISTED[f"torch.{place}".rstrip(".")]["absent"].split() if n.islower()]


ABSENT = [(place, absent(place)[0]) for place in PLACES if absent(place)]


@pytest.mark.parametrize(("place", "name"), ABSENT)
def test_the_error_for_an_absent_name_says_that_pytorch_has_it(place, name):
    module = tg
    for part in filter(None, place.split(".")):
        module = getattr(module, part)
    text = message(lambda: getattr(module, name), AttributeError)
    full = ".".join(filter(None, ["torch", place, name]))
    assert f"PyTorch has {full}, tinygrad_ext does not (yet)." in text and "docs/torch_names.md" in text


def test_the_error_names_what_is_near_or_the_way_out():
    # alone: an import under as_torch leaves a module there
    said = json.loads(
        alone(f"""
import tinygrad_ext as tg
def said(name):
    try:
        getattr(tg.nn, name)
    except AttributeError as error:
        return str(error)
print(json.dumps({{n: said(n) for n in {LISTED["torch.nn"]["absent"].split()} }}))""")
    )
    for name, text in said.items():
        assert text and ("Near: " in text or "docs/write_a_plugin.md" in text), name
    assert "PyTorch has" not in message(lambda: tg.nothing_has_this_name, AttributeError)


RUN = """
import tinygrad_ext as tg
from tinygrad_ext import as_torch
from tinygrad_ext.errors import torch_names
as_torch.install()
assert not torch_names._places.cache_info().currsize
try:
    {}
except ImportError as error:
    print(error)
"""


def printed(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tool.ROOT
    ).stdout


@pytest.mark.parametrize("line", ["import torch.no_such", "from torch import no_such", "import torch.nn.no_such"])
def test_the_error_for_an_unknown_module_lists_modules_for_users(line):
    modules = (
        printed(RUN.format(line)).partition("Modules of torch")[2].partition(": ")[2].partition(".")[0].split(", ")
    )
    assert "functional" in modules if ".nn" in line else {"nn", "optim", "autograd", "utils"} <= set(modules)
    assert not {"registry", "core", "kernels", "describe", "tensor", "archive"} & set(modules)


def test_an_absent_module_can_be_imported_and_says_at_use_that_it_is_not_here():
    use = RUN.replace("ImportError", "NotImplementedError").format("import torch.mtia; torch.mtia.synchronize()")
    assert "torch.mtia.synchronize: tinygrad_ext has none of this" in printed(use)


@pytest.mark.parametrize("question", ["None", "hasattr(tg, '__wrapped__')", "hasattr(tg.nn, '__no_such__')"])
def test_the_list_is_not_read_before_an_error_is_made(question):
    printed(f"import sys, tinygrad_ext as tg; {question}; assert 'tinygrad_ext.errors.torch_names' not in sys.modules")


def test_what_is_near_is_looked_for_once(monkeypatch):
    asked = []
    monkeypatch.setattr(difflib, "get_close_matches", lambda name, *more, **options: asked.append(name) or [])
    for _ in range(3):
        assert not hasattr(tg, "nothing_of_this_name") and not hasattr(tg.nn, "nothing_of_this_name")
    assert asked == ["nothing_of_this_name"] * 2
