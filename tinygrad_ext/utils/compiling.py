"""Compiles sources to a shared library, once: what was built before is taken from a cache.

A library is found by a hash of all that goes into it: the sources, the flags, the compiler (path, size and time of
change), the header tgx.h and its major version, and the files that the sources included when they were compiled. A
lock of the system (flock) goes with the process that holds it, so a build that was killed stops nobody; and a library
appears under its name only when it is whole.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

INCLUDE = Path(__file__).parent.parent / "include"
TABLE = "1"  # major version
LANGUAGES = {".c": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".pyx": "cython"}
DEFAULTS = {"c": ["-O2", "-std=gnu11"], "c++": ["-O2", "-std=c++17"], "cython": ["-O2", "-std=gnu11"]}


class Job:
    """What is to be built.

    Attributes:
        name: of the library. flags, link: for the compiler. include: folders. python: it is a module of Python.
        sources: [(file name, text, (file, line) where the text is from, what is put before it)].
    """

    def __init__(self, name, sources, flags, link, include, python=False):
        self.name, self.python = name, python
        self.sources = [source if len(source) == 4 else (*source, "") for source in sources]
        self.flags, self.link = list(flags), list(link)
        self.include = [str(INCLUDE), *map(os.path.abspath, include)]
        if python:
            self.include.append(sysconfig.get_path("include"))

    def key(self):
        """What the library is called by in the cache."""
        h = hashlib.sha256()
        compilers = [_compiler(language) for language in sorted({LANGUAGES[Path(n).suffix] for n, *_ in self.sources})]
        facts = [TABLE, self.name, self.flags, self.link, self.include, compilers, _stamp(INCLUDE / "tgx.h")]
        if self.python:
            facts.append(sysconfig.get_config_var("EXT_SUFFIX"))
        h.update(json.dumps(facts).encode())
        for name, text, _, before in self.sources:
            h.update(json.dumps([name, text, before]).encode())
        return h.hexdigest()[:20]


def cache_folder():
    """TINYGRAD_EXT_EXTENSIONS_DIR, else a folder in the user's cache."""
    given = os.environ.get("TINYGRAD_EXT_EXTENSIONS_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(base) / "tinygrad_ext" / "extensions"


def build(job, folder=None, verbose=False):
    """The path of the library, built if it was not. RuntimeError with the compiler's words when that fails."""
    folder = cache_folder() if folder is None else Path(folder)
    key = job.key()
    found = _look_up(folder, job.name, key)
    if found is not None:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f"{job.name}-{key}.lock"):
        return _look_up(folder, job.name, key) or _build(job, folder, key, verbose)


def _look_up(folder, name, key):
    """The library of a key, unless a file that it included has changed."""
    note = folder / f"{name}-{key}.json"
    try:
        facts = json.loads(note.read_text())
        if all(_stamp(path) == stamp for path, stamp in facts["included"].items()):
            library = folder / facts["library"]
            return library if library.exists() else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # not there, or not whole
        pass
    return None


@contextlib.contextmanager
def _locked(path):
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _stamp(path):
    """Of a header of ours its contents, of a compiler size and time: a hash of the latter would take longer than it."""
    if str(path).endswith((".h", ".hpp", ".hh", ".inc", ".pxd", ".pxi")):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    facts = os.stat(path)
    return [facts.st_size, facts.st_mtime_ns]


# ---- compilers -----------------------------------------------------------------------------------------------------


def command(language):
    """The words that call the compiler of a language: CC or CXX of the environment, else the system's."""
    variable, names = ("CXX", ("c++", "g++", "clang++")) if language == "c++" else ("CC", ("cc", "gcc", "clang"))
    words = shlex.split(os.environ.get(variable, ""))
    if words:
        return words
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise RuntimeError(
            f"cpp_extension: there is no compiler ({', '.join(names)}); install one, such as Debian's build-essential, "
            f"or name it in the variable {variable}"
        )
    return [found]


def _compiler(language):
    words = command(language)
    path = shutil.which(words[0])
    if path is None:
        raise RuntimeError(f"cpp_extension: the compiler '{words[0]}' is not there")
    return [*words, _stamp(os.path.realpath(path))]


def _build(job, folder, key, verbose):
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{job.name}-") as room:
        room, objects, included = Path(room), [], {}
        languages = [LANGUAGES[Path(name).suffix] for name, *_ in job.sources]
        shared = ["-shared", "-fPIC", "-fvisibility=hidden"]
        for i, ((name, text, where, before), language) in enumerate(zip(job.sources, languages)):
            source = room / f"{i}-{Path(name).name}"
            source.write_text(text if language == "cython" else f'{before}#line {where[1]} "{where[0]}"\n{text}')
            if language == "cython":
                source = _translate(job, source, room, where)
            made = room / f"{i}.o"
            flags = [*DEFAULTS[language], *job.flags, *[f"-I{p}" for p in _folders(job, where)]]
            notes = ["-MMD", "-MF", f"{made}.d"]
            _run(
                [*command(language), "-c", str(source), "-o", str(made), *shared[1:], *flags, *notes], verbose, job.name
            )
            objects.append(str(made))
            included |= {p: _stamp(p) for p in _included(f"{made}.d") if Path(p).parent != room}
        suffix = sysconfig.get_config_var("EXT_SUFFIX") if job.python else ".so"
        linker = command("c++" if "c++" in languages else "c")
        whole = room / "whole.so"
        # a name of its own for each state of the headers: the system does not load a file a second time
        state = hashlib.sha256(json.dumps(included, sort_keys=True).encode()).hexdigest()[:8]
        library = f"{job.name}-{key}-{state}{suffix}"
        _run([*linker, *objects, "-o", str(whole), *shared, *job.link], verbose, job.name)
        os.replace(whole, folder / library)
        note = room / "note.json"
        note.write_text(json.dumps({"library": library, "included": included}))
        os.replace(note, folder / f"{job.name}-{key}.json")
    return folder / library


def _folders(job, where):
    """A file's own folder comes first: what it includes in quotes stands beside it."""
    return [os.path.dirname(os.path.abspath(where[0])), *job.include]


def _included(notes):
    """The files that a compiler's list of dependencies names."""
    text = Path(notes).read_text().replace("\\\n", " ")
    return [
        p for p in text.partition(":")[2].split() if os.path.exists(p) and not p.endswith((".c", ".cc", ".cpp", ".cxx"))
    ]


def _translate(job, source, room, where):
    """Cython's C; its messages name the user's file."""
    source = source.rename(room / f"{job.name}.pyx")
    made = source.with_suffix(".c")
    words = [sys.executable, "-m", "cython", "-3", str(source), "-o", str(made), *[f"-I{p}" for p in job.include]]
    try:
        _run(words, False, job.name)
    except RuntimeError as error:
        raise RuntimeError(str(error).replace(str(source), where[0])) from None
    return made


def _run(words, verbose, name):
    if verbose:
        print(shlex.join(words), flush=True)
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, errors="replace")
    except OSError as error:
        raise RuntimeError(f"cpp_extension: {words[0]} cannot be run: {error.strerror}") from None
    if verbose and done.stderr:
        print(done.stderr, flush=True)
    if done.returncode:
        raise RuntimeError(
            f"Error building extension '{name}':\n{(done.stderr + done.stdout).strip()}\n\nby {shlex.join(words)}"
        )
