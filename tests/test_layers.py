"""Imports point down only, without circles, and the core knows no op by name.

The graph is read off the sources (tools/structure.py): `import` and `cimport` lines of .py, .pyx, .pxd and .pxi files,
those inside functions too. A name taken from the package itself (`tg.zeros`, `tg.no_grad`) counts as the room that
defines it: a dtype is core, an op is ops.

The engine needs a few ops (adding gradients, zeros for a missing one). It asks for them by the name of a slot, which
registry/graph_slots.py fills at import: the one file that says which op does an engine's job. So in core/ and autograd/
a string that equals the name of an op may only stand as a slot's name, in the table of Python's operators, as an
attribute asked of a foreign object, or as the word a message begins with; and nothing there imports an op.

What a room asks of a higher one at run time, it asks by a word (core/call/later.py).
"""

import builtins
import re

import pytest

from tinygrad_ext import registry
from tinygrad_ext.core.data.dtype import by_name as dtypes
from tools import structure
from tools.structure import PACKAGE, room, sources

# lowest first
LAYERS = [
    "core",
    "core.data",
    "core.loops",
    "core.call",
    "core.grad",
    "config",
    "errors",
    "drawing",
    "tensor",
    "archive",
    "serialization",
    "random",
    "fft",
    "linalg",
    "signal",
    "special",
    "return_types",
    "autograd",
    "ops",
    "native",
    "registry",
    "graph",
    "hookspecs",
    "plugins",
    "multiprocessing",
    "futures",
    "utils",
    "profiler",
    "overrides",
    "_overrides",
    "library",
    "extension",
    "backends",
    "amp",
    "cuda",
    "nn",
    "masked",
    "sparse",
    "optim",
    "distributions",
    "quasirandom",
    "func",
    "_higher_order_ops",
    "jit",
    "fx",
    "export",
    "testing",
    "describe",
    "as_torch",
    "cli",
    "__main__",
]
LEVEL = {name: level for level, name in enumerate(LAYERS)}
# The package's root and what puts it together see everything: they are the door, not a layer.
DOORS = {"__init__", "_assemble"}
# modules of one room that import each other; the list may only shrink
CIRCLES = []


@pytest.fixture(scope="module")
def arrows():
    return [a for a in structure.all_arrows() if place(a.path) not in DOORS]


def place(path):
    return room(structure.dotted(path)) or "__init__"


def told(arrow):
    return f"{arrow.path.relative_to(PACKAGE)}:{arrow.line}: {room(arrow.module)} imports {arrow.target}"


def test_every_room_has_a_layer_of_its_own():
    assert {place(p) for p in sources()} - DOORS == set(LAYERS)
    assert len(LAYERS) == len(set(LAYERS))


def test_no_import_points_up(arrows):
    assert not [told(a) for a in arrows if room(a.target) and LEVEL.get(room(a.target), 99) > LEVEL[room(a.module)]]


def test_no_circle_of_modules(arrows):
    found = structure.circles(structure.graph(arrows))
    assert [{m.removeprefix("tinygrad_ext.") for m in c} for c in found] == CIRCLES


def test_an_import_inside_a_function_says_why_it_is_lazy(arrows):
    assert not [told(a) for a in arrows if a.how == "inside" and not _says_lazy(a)]


def _says_lazy(arrow):
    """By a comment on the line, or above the imports it stands among."""
    lines = arrow.path.read_text().splitlines()
    at = arrow.line - 1
    if "# lazy: " in lines[at]:
        return True
    while re.match(r"\s+(from|import) ", lines[at]):
        at -= 1
    return lines[at].strip().startswith("# lazy: ")


@pytest.mark.parametrize(
    "name, code, expected",
    [
        ("core/probe.py", "from tinygrad_ext.nn import Module", ("nn", "top")),
        ("core/probe.py", "import tinygrad_ext.optim", ("optim", "top")),
        ("core/probe.py", "def f():\n    from tinygrad_ext import nn", ("nn", "inside")),
        ("core/probe.py", "import tinygrad_ext as tg\ndef f():\n    return tg.zeros(2)", ("ops", "use")),
        ("core/probe.py", "def f():\n    import tinygrad_ext", (None, "inside")),
        ("core/probe.py", "x = importlib.import_module('tinygrad_ext.plugins')", ("plugins", "inside")),
        ("core/probe.py", "from ..autograd import engine", ("autograd", "top")),
        ("core/probe.pyx", "from ..autograd import engine", ("autograd", "top")),
        ("core/probe.pxd", "from tinygrad_ext.ops.record cimport (\n    a,\n    b)", ("ops", "top")),
        ("nn/probe.py", "from tinygrad_ext import float32", ("core.data", "top")),
    ],
)
def test_an_arrow_is_seen(name, code, expected, tmp_path):
    path = tmp_path / "tinygrad_ext" / name
    path.parent.mkdir(parents=True)
    path.write_text(code)
    found = structure.arrows(path, tmp_path / "tinygrad_ext")
    assert expected in [(room(a.target), a.how) for a in found]


@pytest.mark.parametrize(
    "links, found",
    [
        ({"a": {"b"}, "b": set()}, []),
        ({"a": {"b"}, "b": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, [["a", "b", "c"]]),
    ],
)
def test_a_circle_is_found(links, found):
    assert structure.circles(links) == found


def test_the_drawing_has_every_room_once_and_lowest_first():
    lines = list(structure.as_text(structure.graph(structure.all_arrows(), room)))
    named = [line.split()[1].lstrip("~") for line in lines]
    assert named[0] == "core" and set(LAYERS) <= set(named) and len(named) == len(set(named))
    assert structure.as_svg({"a": {"b"}, "b": set()}).count("<rect") == 2


def op_names():
    """Names of the table that mean nothing else in Python or among the dtypes."""
    names = {n for op in registry.ops.values() for n in (op.schema.name, op.schema.name + "_")}
    return names - set(dtypes) - set(dir(builtins))


# what may stand before a string that equals an op's name
_SLOT = re.compile(r"(?:slot\(|_slots\[|_readers\[)\s*$")
_FOREIGN = re.compile(r"(?:has|get)attr\(\w+, $")
_MESSAGE = re.compile(r"(?:checked_numel|reach|read_numbers|as_tensor_arg|_bad|_need_\w+)\([^\n]*$")
# words that are something else besides an op
_OTHER = {
    "cpu": "a device",
    "to": "an argument of random_",
    "bool_": "NumPy's name of a dtype",
    "mode": "an argument of detect_anomaly",
}


def strings(text):
    """(start, value) of the string literals in Cython source, comments and docstrings left out."""
    tokens = re.finditer(r'"""(?:.|\n)*?"""|#[^\n]*|[fru]*"([^"\n\\]*)"|[fru]*\'([^\'\n\\]*)\'', text)
    return [(m.start(), m[1] if m[1] is not None else m[2]) for m in tokens if m[1] is not None or m[2] is not None]


def test_core_and_autograd_spell_no_op():
    names, found = op_names(), []
    for path in sources():
        if place(path).partition(".")[0] not in ("core", "autograd") or path.name == "operators.pyx":
            continue
        text = path.read_text()
        for imported in re.findall(r"from tinygrad_ext import \(?([^\n)]*)", text):
            found += [f"{path.name}: imports {n}" for n in re.findall(r"\w+", imported) if n in names]
        for start, value in strings(text):
            line = text[text.rfind("\n", 0, start) + 1 : start]
            if value in names - set(_OTHER) and not any(p.search(line) for p in (_SLOT, _FOREIGN, _MESSAGE)):
                found.append(f"{path.name}:{text.count(chr(10), 0, start) + 1}: {value!r}")
    assert not found, "\n".join(found)
