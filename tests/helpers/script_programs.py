"""The table of programs: files in programs/, each with functions and the arguments to call them with.

A file is run as it stands with `torch` bound to a package, so that the same source is judged by several.
"""

import copy
import linecache
import sys
import types
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "jit" / "script" / "programs"
FILES = sorted(p.stem for p in FOLDER.glob("*.py"))


class Case:
    """A function and rows of arguments. differs: why PyTorch is not asked, or ""."""

    def __init__(self, function, rows, differs):
        self.function, self.rows, self.differs = function, rows, differs


def load(stem, package):
    """{name: Case} of a file of programs, run with `torch` meaning a package."""
    path = FOLDER / f"{stem}.py"
    filename = f"{path} [{package.__name__}]"
    text = path.read_text()
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    module = types.ModuleType(f"{stem}_of_{package.__name__}")
    module.__file__ = filename
    sys.modules[module.__name__] = module
    found = {}

    def case(*rows, differs=""):
        def keep(function):
            found[function.__name__] = Case(function, [r if type(r) is tuple else (r,) for r in rows or [()]], differs)
            return function

        return keep

    module.torch, module.case = package, case
    exec(compile(text, filename, "exec"), vars(module))
    return found


def names(stem):
    """Names of the functions of a file, without running it with any package."""
    lines = (FOLDER / f"{stem}.py").read_text().splitlines()
    found, marked = [], False
    for line in lines:
        marked = marked or line.startswith("@case(")
        if marked and line.startswith("def "):
            found.append(line[4:].partition("(")[0])
            marked = False
    return found


def outcome(function, row, arguments=True):
    """("gives", what the function returns and has made of its arguments) or ("raises", the exception)."""
    row = copy.deepcopy(row)
    try:
        result = function(*row)
    except Exception as error:
        return "raises", error
    return "gives", plain([result, *(row if arguments else ())])


def about(value):
    """A plain value with its numbers to five digits: PyTorch's functions round elsewhere."""
    if isinstance(value, (list, tuple)):
        return [about(v) for v in value]
    if isinstance(value, dict):
        return {k: about(v) for k, v in value.items()}
    try:
        return f"{float(value):.5g}" if isinstance(value, str) else value
    except ValueError:
        return value


def plain(value):
    """A value without the types of a package; floats as text, so that nan equals nan."""
    kind = type(value).__name__
    if kind in ("Tensor", "Parameter"):
        return ["tensor", str(value.dtype).rpartition(".")[2], list(value.shape), plain(value.tolist())]
    if kind in ("dtype", "device", "layout"):
        return str(value).rpartition(".")[2]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {plain_key(k): plain(v) for k, v in value.items()}
    if isinstance(value, float):
        return repr(value)
    if hasattr(value, "__dict__") and not hasattr(value, "name"):
        return {k: plain(v) for k, v in vars(value).items()}
    return str(value) if hasattr(value, "name") else value


def plain_key(key):
    return str(key) if hasattr(key, "name") else key
