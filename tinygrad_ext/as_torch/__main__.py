"""`python -m tinygrad_ext.as_torch`: runs a program in which `import torch` means tinygrad_ext.

The program gets what Python itself would give it: sys.argv, sys.path[0], a `__main__` of its own that stays as long as
the process (runpy's goes with the run, and with it what threads and `-i` need), and tracebacks that begin in it.
"""

import builtins
import importlib.util
import io
import os
import sys
import types
from importlib.machinery import SourceFileLoader

from tinygrad_ext import as_torch

USAGE = """usage: python -m tinygrad_ext.as_torch [-i] (script.py | -m module | -c code | -) [arguments]

Runs a program in which `import torch` means tinygrad_ext. Without a program: an interactive session, or the program on
standard input.

  -m module   run a module, such as pytest
  -c code     run a string
  -           run standard input
  -i          stay in an interactive session afterwards
  -h, --help  show this help
"""


class _Refused(Exception):
    """There is nothing to run; the message says why."""


def main(arguments):
    """Run what the arguments name; returns the exit status."""
    arguments = list(arguments)
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    stay = arguments[:1] == ["-i"]
    del arguments[:stay]
    as_torch.install()
    if not arguments and sys.stdin.isatty():
        return _interact(_new_main(), "")
    try:
        run = _program(arguments)
    except _Refused as error:
        print(f"python -m tinygrad_ext.as_torch: {error}", file=sys.stderr)
        return 2
    module = _new_main()
    status = _run(run, module, stay)
    return _interact(module, None) if stay else status


def _new_main():
    module = types.ModuleType("__main__")
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    return module


# ---- what to run: each sets sys.argv and sys.path[0] and returns what makes the code for a `__main__` ----------------


def _program(arguments):
    kind = arguments[0] if arguments else "-"
    if kind in ("-m", "-c"):
        if len(arguments) < 2:
            raise _Refused(f"argument expected for {kind}\n{USAGE}")
        sys.argv = [kind, *arguments[2:]]
        return (_module if kind == "-m" else _string)(arguments[1])
    if kind != "-" and kind.startswith("-"):
        raise _Refused(f"unknown option {kind}\n{USAGE}")
    sys.argv = arguments or [""]
    return _stdin() if kind == "-" else _script(kind)


def _first_on_path(folder):
    # `python -m tinygrad_ext.as_torch` has put the current folder first, unless told to keep the path safe
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def _string(source):
    _first_on_path("")
    return lambda main: compile(source, "<string>", "exec", dont_inherit=True)


def _stdin():
    _first_on_path("")
    return lambda main: compile(sys.stdin.read(), "<stdin>", "exec", dont_inherit=True)


def _script(path):
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        raise _Refused(f"can't open file '{os.path.abspath(path)}': [Errno {error.errno}] {error.strerror}") from None
    _first_on_path(os.path.dirname(os.path.realpath(path)))

    def code(main):
        main.__file__ = path
        main.__loader__ = SourceFileLoader("__main__", path)
        return compile(source, path, "exec", dont_inherit=True)

    return code


def _module(name):
    def code(main):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(name + ".__main__")
        found = spec and spec.loader and spec.loader.get_code(spec.name)
        if not found:
            raise ModuleNotFoundError(f"No module named '{name}' that can be run as a program", name=name)
        main.__spec__, main.__loader__, main.__package__ = spec, spec.loader, spec.parent
        main.__file__ = sys.argv[0] = spec.origin
        return found

    return code


# ---- running it ----------------------------------------------------------------------------------------------------


def _run(make_code, module, stay):
    """Run it as Python would, and return the exit status; what it raises is shown without our own frames."""
    try:
        exec(make_code(module), module.__dict__)
    except SystemExit:
        if not stay:
            raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        tb = _own_frames_off(error.__traceback__)
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, tb
        sys.excepthook(type(error), error.with_traceback(tb), tb)
        return 1
    return 0


def _own_frames_off(tb):
    own = (__file__, "<frozen importlib.util>")
    while tb is not None and tb.tb_frame.f_code.co_filename in own:
        tb = tb.tb_next
    return tb


def _interact(module, banner):
    import code

    try:
        import readline  # noqa: F401 - editing of the line
    except ImportError:
        pass
    if banner is not None:
        banner = f"Python {sys.version.split()[0]}; import torch means tinygrad_ext"
    code.interact(banner=banner if banner is not None else "", local=module.__dict__, exitmsg="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
