"""Building compiled extensions: at once, from files or texts, and in a setup.py."""

import importlib.util
import linecache
import os
import sys
from pathlib import Path

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later

from . import compiling

__all__ = [  # noqa: F822
    "BuildExtension",
    "CExtension",
    "CppExtension",
    "PointwiseExtension",
    "include_paths",
    "load",
    "load_inline",
]


@boundary
def include_paths():
    """The folders for a compiler's -I, in which tgx.h is.

    >>> import os
    >>> import tinygrad_ext as tg
    >>> [os.path.exists(os.path.join(p, "tgx.h")) for p in tg.utils.cpp_extension.include_paths()]
    [True]
    """
    return [str(compiling.INCLUDE)]


@boundary
def load(
    name,
    sources,
    *,
    extra_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
):
    """Compile files of C, C++ or Cython and load them: their ops are in `ops.<namespace>`.

    Args:
        name: of the library; letters, digits and _.
        sources: one path or several: .c, .cpp, .cc, .cxx; or one .pyx.
        extra_cflags, extra_ldflags: for the compiler and for linking. extra_include_paths: folders.
        build_directory: where the library is kept; else in a cache (TINYGRAD_EXT_EXTENSIONS_DIR).
        verbose: print what is run.

    Nothing is compiled that was compiled before from the same sources, with the same flags and compiler.
    Returns what `ops.load_library` returns; for Cython the module. Raises RuntimeError with the compiler's words, and
    what `load_library` raises.
    """
    paths = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    texts = []
    for path in paths:
        path = Path(path)
        if path.suffix not in compiling.LANGUAGES:
            raise ValueError(f"load: {path} is of no language that is known here: {', '.join(compiling.LANGUAGES)}")
        texts.append((path.name, path.read_text(), (str(path), 1)))
    return _load(name, texts, extra_cflags, extra_ldflags, extra_include_paths, build_directory, verbose)


@boundary
def load_inline(
    name,
    cpp_sources=None,
    *,
    c_sources=None,
    cython_sources=None,
    extra_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
):
    """Compile texts and load them, as `load` does files.

    Args:
        name: of the library.
        cpp_sources, c_sources: a text, or several. ``#include <tgx.h>`` is put before each.
        cython_sources: a text, alone.

    The compiler's messages name the lines of the Python file in which a text stands.
    """
    frame = sys._getframe(1)
    texts = []
    for kind, given in ((".c", c_sources), (".cpp", cpp_sources), (".pyx", cython_sources)):
        for text in [given] if isinstance(given, str) else given or ():
            where = _place(text, frame.f_code.co_filename) or (f"<load_inline {name}>", 1)
            before = "" if kind == ".pyx" else "#include <tgx.h>\n"
            texts.append((f"{name}{len(texts)}{kind}", text, where, before))
    if not texts:
        raise ValueError(
            f"load_inline({name!r}): there is nothing to compile; give c_sources, cpp_sources or cython_sources"
        )
    sources = [(n, t, (w[0], w[1]), b) for n, t, w, b in texts]
    return _load(name, sources, extra_cflags, extra_ldflags, extra_include_paths, build_directory, verbose)


def _place(text, path):
    """(file, line) of a text that stands in a Python file, or None."""
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return None
    inside = [line.rstrip("\n") for line in linecache.getlines(path)]
    wanted = lines[first : first + 3]
    for i in range(len(inside)):
        if inside[i].endswith(wanted[0]) and inside[i + 1 : i + len(wanted)] == wanted[1:]:
            return path, i + 1 - first
    return None


def _load(name, sources, cflags, ldflags, include, folder, verbose):
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"cpp_extension: the name must be letters, digits and _, not {name!r}")
    python = any(source[0].endswith(".pyx") for source in sources)
    if python and len(sources) > 1:
        raise ValueError(f"cpp_extension: {name}: a Cython source stands alone")
    job = compiling.Job(name, sources, cflags or (), ldflags or (), include or (), python)
    path = str(compiling.build(job, folder, verbose))
    if not python:
        return later("extensions").load_library(path)
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == path:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


@boundary
def register_init(name, version, address, facts=None):
    """Register the ops of a module compiled with tgx.pxd, whose `tgx_start` calls this.

    Args:
        name, version: of the extension. address: of its init, a number.
        facts: name of an op -> fields of its record that are Python's.

    Raises what init raises, and ValueError for facts about an op that is not there; then nothing is registered.
    """
    return later("extensions").start_module(name, version, address, facts)


# ---- setup.py ------------------------------------------------------------------------------------------------------


def CExtension(name, sources, *args, **keywords):
    """A setuptools.Extension of C sources that finds tgx.h; build it with BuildExtension."""
    from setuptools import Extension  # lazy: for setup.py only

    keywords["include_dirs"] = [*include_paths(), *keywords.get("include_dirs", ())]
    made = Extension(name, list(map(str, sources)), *args, **keywords)
    made.of_table = True
    return made


def CppExtension(name, sources, *args, **keywords):
    """The same of C++ sources."""
    keywords.setdefault("language", "c++")
    return CExtension(name, sources, *args, **keywords)


def PointwiseExtension(name, records, *, folder="build/loops"):
    """A setuptools.Extension of the loops of pointwise ops; build it with BuildExtension.

    Args:
        name: of the library, "tgx_mylib._loops".
        records: the Python files in which ``register("...", scalar="...")`` stands, with literals.
        folder: where the C files are written.

    Each expression is compiled for three instruction sets, as the built-in ops are; `register.loops(path)` takes them
    in. Raises ValueError for what cannot be read.
    """
    from setuptools import Extension  # lazy: for setup.py only

    from . import loop_library  # lazy: as above

    paths = loop_library.write(list(map(str, records)), Path(folder) / name)
    kernels = str(loop_library.KERNELS)
    made = Extension(name, paths, include_dirs=[kernels], extra_compile_args=loop_library.FLAGS, libraries=["m"])
    made.depends = list(map(str, records))
    made.of_table = True
    return made


def __getattr__(name):
    if name == "BuildExtension":
        from ._build_extension import BuildExtension  # lazy: setuptools is for setup.py only

        return BuildExtension
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
