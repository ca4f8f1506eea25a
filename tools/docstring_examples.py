"""Examples in PyTorch's own docstrings, run there and here: python -m tools.docstring_examples [TEXT]

What follows >>> is taken from the docstrings of the PyTorch that is installed, those of functions, classes and methods
whose names contain TEXT, and run in two processes, statement by statement, with `torch` meaning either. Prints what is
answered otherwise here, then the counts. Random numbers come from the same seed on both sides, and are the same.
"""

import contextlib
import doctest
import importlib
import inspect
import io
import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter

SECONDS = 8  # of a statement
# of devices, of processes and of the network
NOT_ASKED = ("cuda", "distributed", "hub", "mps", "mtia", "multiprocessing", "onnx", "package", "xpu")
PREPARED = """
import collections, copy, functools, math, numpy as np, os, sys, torch, typing
import torch.nn.functional as F
from torch import Tensor, nn
"""
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?|-?\.\d+")


# ---- what is run ---------------------------------------------------------------------------------------------------


def examples():
    """{name: statements} of the docstrings of the installed PyTorch; each docstring once."""
    import torch

    found, seen = {}, set()
    names = [m.name for m in pkgutil.iter_modules(torch.__path__) if m.name[0] != "_" and m.name not in NOT_ASKED]
    modules = ["torch", *[f"torch.{name}" for name in names]]
    modules += [f"{m}.{n}" for m in ("torch.nn", "torch.autograd", "torch.utils") for n in vars(sys.modules[m])]
    for module in modules:
        try:
            space = importlib.import_module(module)
        except Exception:
            continue
        for name, thing in inspect.getmembers(space):
            _collect(f"{module}.{name}", thing, found, seen)
            if inspect.isclass(thing) and thing.__module__.startswith("torch"):
                for part, member in inspect.getmembers(thing):
                    _collect(f"{module}.{name}.{part}", member, found, seen)
    return found


def _collect(name, thing, found, seen):
    text = None if inspect.ismodule(thing) else getattr(thing, "__doc__", None)
    if isinstance(text, str) and ">>>" in text and text not in seen and not name.rpartition(".")[2].startswith("_"):
        seen.add(text)
        with contextlib.suppress(ValueError):  # a docstring that doctest cannot read
            found[name] = [e.source for e in doctest.DocTestParser().get_examples(text)]


def run(library, statements_file, results_file):
    """Run all statements with `torch` meaning the library; {name: [(how it ended, what was shown)]} as JSON."""
    warnings.simplefilter("ignore")
    if library != "torch":
        importlib.import_module(f"{library}.as_torch").install()
    import torch

    signal.signal(signal.SIGALRM, _stop)
    with open(statements_file) as f:
        documents = json.load(f)
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, statements in documents.items():
            torch.set_default_device("cpu")
            torch.set_default_dtype(torch.float32)
            torch.set_grad_enabled(True)
            torch.manual_seed(0)
            names = {"__name__": "__main__"}
            exec(PREPARED, names)
            answers[name] = [_answer(statement, names) for statement in statements]
    with open(results_file, "w") as f:
        json.dump(answers, f)


class _Late(BaseException):
    """A statement took too long."""


def _stop(*_):
    raise _Late


def _answer(statement, names):
    """How a statement ended, and what it showed or raised."""
    shown = io.StringIO()
    was, sys.displayhook = sys.displayhook, lambda value: value is not None and print(repr(value), file=shown)
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(shown):
            exec(compile(statement, "<example>", "single"), names)
        return "ran", shown.getvalue()
    except SyntaxError:
        return "no Python", ""
    except _Late:
        return "late", ""
    except Exception as error:
        return "raised", type(error).__name__
    finally:
        signal.alarm(0)
        sys.displayhook = was


# ---- what is compared ----------------------------------------------------------------------------------------------


def alike(a, b):
    """Whether two texts say the same, numbers to a thousandth."""
    a, b = (re.sub(r"\s+", " ", re.sub(r"0x[0-9a-f]+", "", t).replace("tinygrad_ext", "torch")) for t in (a, b))
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b), strict=True)
    return all(abs(float(x) - float(y)) <= 1e-3 * max(abs(float(x)), 1e-3) for x, y in pairs)


def judged(theirs, ours):
    """In a word, how an answer of ours stands to PyTorch's."""
    if theirs[0] != "ran":
        return "not run by PyTorch"
    if ours[0] != "ran":
        return f"{ours[0]} here"
    return "alike" if alike(theirs[1], ours[1]) else "shown otherwise"


def main(text=""):
    """Run both sides, print the differences and the counts."""
    documents = {name: statements for name, statements in examples().items() if text in name}
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("statements", "torch", "tinygrad_ext")]
        with open(paths[0], "w") as f:
            json.dump(documents, f)
        sides = [
            subprocess.Popen(
                [sys.executable, "-m", "tools.docstring_examples", "--run", os.path.basename(p), paths[0], p],
                stderr=subprocess.DEVNULL,
            )
            for p in paths[1:]
        ]
        if any([side.wait() for side in sides]):
            raise SystemExit("a side ended early: " + ", ".join(str(side.returncode) for side in sides))
        answers = []
        for p in paths[1:]:
            with open(p) as f:
                answers.append(json.load(f))
    counts = Counter()
    for name, statements in documents.items():
        for statement, a, b in zip(statements, *[side[name] for side in answers], strict=True):
            word = judged(a, b)
            counts[word] += 1
            if word not in ("alike", "not run by PyTorch"):
                print(f"{word}: {name}: {statement.strip()}\n    {a[1].strip()[:300]!r}\n    {b[1].strip()[:300]!r}")
    print(*(f"{n:>6} {word}" for word, n in counts.most_common()), sep="\n")


if __name__ == "__main__":
    run(*sys.argv[2:]) if sys.argv[1:2] == ["--run"] else main(*sys.argv[1:])
