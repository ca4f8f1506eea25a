"""load_library: an extension is opened, compared with the table, and asked for its ops: all of them or none."""

import os
import sys
import threading

from tinygrad_ext import registry
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later
from tinygrad_ext.library import state
from tinygrad_ext.registry import scope as _scope

from . import elf, table
from .registering import add

FEATURES = {1: "ops", 2: "autograd", 4: "threads", 8: "random numbers"}
SMALLEST, LARGEST = 40, 4096  # bytes of what an extension exports
loaded = {}  # path -> (Loaded, Scope) of the libraries whose ops are registered
_lock = threading.RLock()


class Loaded:
    """An extension that was loaded.

    Attributes:
        path, name, version: of the extension.
        abi: the table that it was built for, "1.0".
        ops: names of what it registered.
    """

    def __init__(self, path, name, version, abi):
        self.path, self.name, self.version, self.abi, self.ops = path, name, version, abi, []

    def __repr__(self):
        return f"<extension {self.name} {self.version}, table {self.abi}: {', '.join(self.ops) or 'no ops'}>"


@boundary
def load_library(path):
    """Load a compiled extension: its ops are in `ops.<namespace>` afterwards.

    Args:
        path: of a shared library that exports ``tgx_extension_v1``, as ``TGX_EXTENSION`` in ``tgx.h`` writes it.

    What it needs is compared with what is here before any of its code runs. A second call for one file does nothing.
    Returns a Loaded. Raises OSError for a file that is none, ImportError for one that is made for another table; and
    what its init raises, after everything that it had registered is taken back.
    """
    return load(path, _scope.current())


def load(path, to, facts=None):
    """load_library for a scope. facts: name of an op -> fields of its record that are Python's."""
    path = os.path.realpath(os.fspath(path))
    with _lock:
        known = loaded.get(path)
        if known is not None:
            return known
        try:
            check(path)
        except (OSError, ImportError):
            if os.path.exists(path):
                state.refused_libraries.append(path)
            raise
        own = to.child()
        try:
            return _start(path, own, dict(facts or {}))
        except BaseException:
            own.undo()
            raise


def _start(path, own, facts):
    library = table.open_library(path)
    name = _checked_name(library, path)
    _, major, minor, _ = library.declared
    made = Loaded(path, name, library.version or "0", f"{major}.{minor}")
    library.start(_register(made, own, facts))
    _check_used(made, facts)
    own.put(loaded, path, made)
    return made


def _check_used(made, facts):
    if facts:
        raise ValueError(
            f"{made.path}: there are facts about {', '.join(map(repr, facts))}, but the extension registers "
            f"{', '.join(made.ops) or 'nothing'}"
        )


def _register(made, own, facts):
    """What the table calls for each op."""

    def register(definition):
        short = definition.schema.partition("(")[0].strip()
        op = add(definition, own, made.path, facts.pop(short, None) or facts.pop(short.partition("::")[2], {}))
        made.ops.append(op.name)

    return register


def start_module(name, version, address, facts=None):
    """load_library for a module of Python that was compiled with tgx.pxd; address: of its init. facts: as of `load`."""
    own, facts = _scope.current().child(), dict(facts or {})
    made = Loaded(name, name, version, version_here())
    with _lock:
        try:
            table.start_at(name, address, _register(made, own, facts))
            _check_used(made, facts)
        except BaseException:
            own.undo()
            raise
    return made


def _checked_name(library, path):
    if library.name is None:
        raise ImportError(
            f'load_library: {path} exports an extension without a name; write TGX_EXTENSION("name", "version", init)'
        )
    return library.name


# ---- the handshake -------------------------------------------------------------------------------------------------


def check(path):
    """Compare what an extension exports with the table. It is read off the file: none of its code runs."""
    pretend()
    here = table.facts()
    size, major, minor, needs = elf.exported(path)
    if not SMALLEST <= size <= LARGEST:
        raise ImportError(
            f"load_library: {path} exports a tgx_extension_v1 that says it has {size} bytes, which cannot be; build it "
            "with the tgx.h of this package"
        )
    if major != here["major"]:
        raise ImportError(
            f"load_library: {path} is built for table {major}.{minor}, and tinygrad_ext {_version()} has "
            f"{here['major']}.{here['minor']}: another major version. Build it with this package's tgx.h "
            "(python -m tinygrad_ext --includes)"
        )
    if minor > here["minor"]:
        raise ImportError(
            f"load_library: {path} needs table {major}.{minor}, and tinygrad_ext {_version()} has "
            f"{here['major']}.{here['minor']}. Install a newer tinygrad_ext, or build it with TGX_TARGET_MINOR "
            f"{here['minor']}"
        )
    missing = [word for bit, word in FEATURES.items() if needs & bit and not here["features"] & bit]
    unknown = needs & ~sum(FEATURES)
    if missing or unknown:
        raise ImportError(
            f"load_library: {path} needs {', '.join(missing) or f'features {unknown:#x}'}, which the table "
            f"{here['major']}.{here['minor']} of tinygrad_ext {_version()} does not have. Install a newer one"
        )


def pretend():
    """Play an older core where TINYGRAD_EXT_ABI_PRETEND says so, "1.0"."""
    wanted = os.environ.get("TINYGRAD_EXT_ABI_PRETEND", "")
    if not wanted:
        return
    major, _, minor = wanted.partition(".")
    if major != str(table.facts()["major"]) or not minor.isdecimal():
        raise ValueError(f"TINYGRAD_EXT_ABI_PRETEND={wanted!r}: expected a version of the table, such as 1.0")
    table.pretend(int(minor))


def _version():
    return sys.modules["tinygrad_ext"].__version__


def version_here():
    """Version of the table, "1.1"."""
    pretend()
    here = table.facts()
    return f"{here['major']}.{here['minor']}"


def build_facts():
    """{word: value} of what a build of an extension may want to know."""
    from tinygrad_ext.utils import cpp_extension  # lazy: who loads a library compiles nothing

    here, compiling = {**table.facts(), "version": version_here()}, cpp_extension.compiling
    return {
        "version": _version(),
        "table": f"{here['version']}, {here['size']} bytes",
        "features": ", ".join(word for bit, word in FEATURES.items() if here["features"] & bit),
        "includes": " ".join(cpp_extension.include_paths()),
        "c": " ".join([*compiling.command("c"), *compiling.DEFAULTS["c"]]),
        "c++": " ".join([*compiling.command("c++"), *compiling.DEFAULTS["c++"]]),
        "cache": str(compiling.cache_folder()),
    }


# ---- what the table asks for by name -------------------------------------------------------------------------------


def _find(name):
    """(Op, the function that handlers see) of "aten::add.Tensor" or "vision::roi_align"."""
    namespace, colons, rest = name.partition("::")
    if name.removesuffix(".default") not in registry.ops and colons:
        later("plugins").load_namespace(namespace)
    op = registry.ops.get(name.removesuffix(".default"))
    if op is None:
        near = [n for n in registry.ops if n.partition(".")[0] == name.partition(".")[0]]
        hint = f"; its overloads are {', '.join(near)}" if near else ". Names are written 'aten::add.Tensor'"
        raise LookupError(f"resolve: there is no op '{name}'{hint}")
    own = "" if namespace == "aten" else f"ops.{namespace}."
    return op, registry.functions.get(own + op.schema.name) or registry.methods.get(op.schema.name)


table.set_slots(_version(), _find)
