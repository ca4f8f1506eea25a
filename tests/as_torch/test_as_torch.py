"""The alias: `import torch` means tinygrad_ext, in a process, in a test, on the command line."""

import importlib
import importlib.util
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import tinygrad_ext
from tinygrad_ext import as_torch as alias

ROOT = Path(__file__).parents[2]
SUBMODULES = [
    "autograd",
    "autograd.function",
    "autograd.gradcheck",
    "autograd.variable",
    "cuda",
    "linalg",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.modules",
    "nn.modules.module",
    "nn.modules.utils",
    "nn.parameter",
    "nn.utils",
    "optim",
    "optim.lr_scheduler",
    "overrides",
    "random",
    "serialization",
    "special",
    "testing",
    "utils.data",
    "utils.hooks",
]


@pytest.fixture
def no_torch():
    """No module named torch at first, and what was there put back at last."""
    kept = {n: sys.modules.pop(n) for n in list(sys.modules) if n == "torch" or n.startswith("torch.")}
    yield
    alias.uninstall()
    for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
        del sys.modules[name]
    sys.modules.update(kept)


def test_the_package_holds_itself(no_torch):
    alias.install()
    import torch

    assert torch.torch is torch
    alias.uninstall()
    assert not hasattr(tinygrad_ext, "torch")


# ---- in a process --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUBMODULES)
def test_a_submodule_is_the_same_object_under_both_names(as_torch, name):
    own = importlib.import_module("tinygrad_ext." + name)
    spec = own.__spec__
    assert importlib.import_module("torch." + name) is own
    assert own.__spec__ is spec and own.__name__ == "tinygrad_ext." + name


def test_the_import_lines_of_the_notes(as_torch):
    names = {}
    exec(
        "import torch\n"
        "import torch.nn as nn\n"
        "import torch.nn.functional as F\n"
        "from torch import Tensor, nn as again\n"
        "from torch.autograd import Function, Variable, gradcheck, gradgradcheck\n"
        "from torch.utils.data import DataLoader\n"
        "from torch.nn.modules.module import Module, register_module_forward_hook\n"
        "from torch.nn.modules.utils import _pair\n"
        "import torch.overrides, torch._overrides\n",
        names,
    )
    assert names["torch"] is tinygrad_ext and names["nn"] is names["again"] is tinygrad_ext.nn
    assert names["Module"] is names["nn"].Module and names["_pair"](3) == (3, 3)
    assert names["F"].relu is tinygrad_ext.nn.functional.relu
    assert tinygrad_ext.overrides is importlib.import_module("torch._overrides")


def test_a_function_is_not_hidden_by_the_module_of_its_name(as_torch):
    importlib.import_module("torch.autograd.gradcheck")
    assert not isinstance(tinygrad_ext.autograd.gradcheck, types.ModuleType)


def test_a_module_first_imported_under_the_alias_is_loaded_once(no_torch):
    kept = sys.modules.pop("tinygrad_ext.cuda", None)
    try:
        alias.install()
        assert importlib.import_module("torch.cuda") is importlib.import_module("tinygrad_ext.cuda")
    finally:
        if kept is not None:
            sys.modules["tinygrad_ext.cuda"] = tinygrad_ext.cuda = kept


@pytest.mark.parametrize(
    "line, text",
    [
        ("import torch.mtia_none", r"No module named 'torch\.mtia_none'.*autograd.*nn.*docs/differences\.md"),
        ("import torch.nn.quantum", r"No module named 'torch\.nn\.quantum'.*functional.*docs/differences\.md"),
        ("from torch import mtia_none", r"cannot import name 'mtia_none' from 'torch'.*docs/differences\.md"),
        ("from torch.nn import Transformator", r"cannot import name 'Transformator'.*docs/differences\.md"),
    ],
)
def test_an_import_of_what_is_not_here_says_what_is(as_torch, line, text):
    with pytest.raises(ModuleNotFoundError, match=text):
        exec(line)


def test_asking_whether_a_module_exists_is_answered_without_an_error(as_torch):
    assert importlib.util.find_spec("torch.mtia") is None
    assert importlib.util.find_spec("torch.nn").name == "tinygrad_ext.nn"


def test_other_packages_are_found_as_before(as_torch):
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'torch_is_not_a_prefix'$"):
        importlib.import_module("torch_is_not_a_prefix")


def test_the_version_is_that_of_the_pytorch_that_is_followed(as_torch):
    version = as_torch.__version__
    assert version.startswith(alias.TORCH_VERSION) and "tinygrad_ext" in version
    assert tuple(int(part) for part in version.split(".")[:2]) >= (2, 13)
    assert version >= "2.2" and version > (1, 7) and not version < "2.9.1" and version <= "3"
    assert version.__lt__(3) is NotImplemented and version.__lt__("unknown") is NotImplemented


def test_install_and_uninstall_leave_no_trace(no_torch):
    for name in alias.BROUGHT:
        importlib.import_module(name)
    before, version, path = set(sys.modules), tinygrad_ext.__version__, list(sys.meta_path)
    assert not alias.installed()
    alias.install()
    alias.install()
    assert alias.installed() and sys.modules["torch"] is tinygrad_ext
    alias.uninstall()
    alias.uninstall()
    assert not alias.installed() and set(sys.modules) == before
    assert sys.meta_path == path and tinygrad_ext.__version__ == version


def test_a_torch_that_is_imported_already_is_not_taken_over(no_torch):
    real = sys.modules["torch"] = types.ModuleType("torch")
    below = sys.modules["torch.nn"] = types.ModuleType("torch.nn")
    with pytest.raises(RuntimeError, match=r"already imported.*replace=True"):
        alias.install()
    assert sys.modules["torch"] is real and not alias.installed()
    alias.install(replace=True)
    assert importlib.import_module("torch.nn") is tinygrad_ext.nn
    alias.uninstall()
    assert sys.modules["torch"] is real and sys.modules["torch.nn"] is below


# ---- in pytest -----------------------------------------------------------------------------------------------------


def test_the_pytest_module_loads_nothing_heavy():
    code = "import sys, pytest_tinygrad_ext; assert not {'tinygrad_ext', 'numpy'} & set(sys.modules)"
    assert _python("-c", code).returncode == 0


def test_the_fixture_ends_with_the_test(pytester_run):
    done = pytester_run(
        "def test_on(as_torch):\n"
        "    import torch\n"
        "    assert torch is as_torch and torch.__name__ == 'torch'\n"
        "def test_off():\n"
        "    from tinygrad_ext import as_torch\n"
        "    assert not as_torch.installed()\n"
    )
    assert "2 passed" in done.stdout, done.stdout


@pytest.fixture
def pytester_run(tmp_path):
    def run(source):
        (tmp_path / "test_it.py").write_text(source)
        return _python("-m", "pytest", "-p", "pytest_tinygrad_ext", "-p", "no:cacheprovider", str(tmp_path))

    return run


# ---- on the command line -------------------------------------------------------------------------------------------


def _python(*arguments, **options):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    return subprocess.run(
        [sys.executable, *arguments], env=env, capture_output=True, text=True, check=False, timeout=600, **options
    )


def run(*arguments, **options):
    return _python("-m", "tinygrad_ext.as_torch", *arguments, **options)


def test_a_script_has_its_arguments_its_folder_and_a_main_of_its_own(tmp_path):
    (tmp_path / "beside.py").write_text("import torch\nvalue = torch.ones(2).sum().item()\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import pickle, sys\n"
        "import torch, beside\n"
        "class Thing:\n    pass\n"
        "assert type(pickle.loads(pickle.dumps(Thing()))) is Thing\n"
        "assert __name__ == '__main__' and __file__ == sys.argv[0]\n"
        "print(torch.__name__, beside.value, sys.argv[1:])\n"
        "sys.exit(7)\n"
    )
    done = run(str(script), "--flag", "-m")
    assert done.stdout == "torch 2.0 ['--flag', '-m']\n" and done.returncode == 7, done.stderr


def test_a_module_a_string_and_standard_input(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("import sys, torch\nfrom . import __name__ as n\nprint(n, sys.argv[1:])\n")
    assert run("-m", "package", "x", cwd=tmp_path).stdout == "package ['x']\n"
    assert "list" in run("-m", "torch", "ops", "--help").stdout
    line = "import sys, torch; print(torch.__name__, sys.argv)"
    assert run("-c", line, "x").stdout == "torch ['-c', 'x']\n"
    assert run("-", "x", input=line).stdout == "torch ['-', 'x']\n"
    assert run(input=line).stdout == "torch ['']\n"


def test_an_interactive_session_goes_on_with_the_names_of_the_program():
    done = run("-i", "-c", "import torch; x = torch.ones(3)", input="print(x.sum().item())\n")
    assert "3.0" in done.stdout and done.returncode == 0, done.stderr


def test_a_traceback_begins_in_the_program(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("def f():\n    raise KeyError('lost')\n\nf()\n")
    done = run(str(script))
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and lines[0].startswith("Traceback") and lines[-1] == "KeyError: 'lost'"
    assert lines[1] == f'  File "{script}", line 4, in <module>' and "as_torch" not in done.stderr
    script.write_text("x = (\n")
    done = run(str(script))
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["missing.py"], "can't open file"),
        (["-m"], "argument expected for -m"),
        (["-c"], "argument expected for -c"),
        (["--unknown"], "unknown option --unknown"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments, text):
    done = run(*arguments)
    assert done.returncode == 2 and text in done.stderr


def test_a_module_that_does_not_exist():
    done = run("-m", "no_such_module_anywhere")
    assert done.returncode == 1 and "No module named 'no_such_module_anywhere'" in done.stderr


def test_help():
    done = run("--help")
    assert done.returncode == 0 and "usage: python -m tinygrad_ext.as_torch" in done.stdout


def test_the_package_and_its_types_are_called_torch(as_torch):
    import pickle

    import torch

    assert torch.__name__ == "torch" and torch is tinygrad_ext
    types = (torch.Tensor, torch.nn.Parameter, torch.device, torch.dtype, torch.Size, torch.Generator)
    assert {t.__module__.partition(".")[0] for t in types} == {"torch"}
    t = pickle.loads(pickle.dumps(torch.ones(2)))
    assert type(t) is torch.Tensor and t.tolist() == [1, 1]
    assert torch.overrides.ignored_functions()[torch.save] == "reads or writes a file"


def test_the_package_is_installed_for_those_who_ask_its_metadata(as_torch):
    from importlib import metadata

    assert metadata.version("torch") == as_torch.__version__ and metadata.metadata("torch")["Name"] == "torch"
    assert metadata.version("pytest") == pytest.__version__ and metadata.distribution("torch").files is None
    assert next(iter(metadata.distributions(name="torch"))).version == as_torch.__version__


def test_parts_of_the_standard_library_that_come_with_the_import_are_there():
    program = (
        "from tinygrad_ext import as_torch; as_torch.install(); import multiprocessing, urllib, unittest;"
        "multiprocessing.connection.Pipe, urllib.request.urlopen, unittest.mock.patch"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
