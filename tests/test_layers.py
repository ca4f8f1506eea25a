"""Imports point down only, and the core knows no op by name.

The graph is drawn from the sources: `import` and `cimport` lines of .py, .pyx and .pxd files, those inside functions
too. A name taken from the package itself (`from tinygrad_ext import zeros`, `tg.zeros`) counts as the layer that
defines it: a dtype is core, an op is ops. The grad modes (no_grad, ...) count as core, whose state they switch.

The engine needs a few ops (adding gradients, zeros for a missing one). It asks for them by the name of a slot, which
registry/graph_slots.py fills at import: the one file that says which op does an engine's job. So in core/ and autograd/
a string that equals the name of an op may only stand as a slot's name, in the table of Python's operators, as an
attribute asked of a foreign object, or as the word a message begins with; and nothing there imports an op.
"""

import builtins
import re
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.core.dtype import by_name as dtypes

PACKAGE = Path(tg.__file__).parent
# lowest first; what stands on one line may import each other
LAYERS = [
    "kernels",
    "core",
    "errors ops native registry overrides library plugins hookspecs tensor return_types "
    "random linalg special fft serialization archive config cuda amp backends _overrides",
    "autograd",
    "graph",
    "nn optim jit func utils testing describe cli as_torch __main__",
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names.split()}
# The package's root and what puts it together see everything: they are the door, not a layer.
MODES = "tinygrad_ext.autograd.modes"
DOORS = {"__init__", "_assemble", "hookspecs"}
ARROW = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n#]+)|c?import[ \t]+([\w., ]+))", re.M
)


def sources():
    return [p for p in sorted(PACKAGE.rglob("*")) if p.suffix in (".py", ".pyx", ".pxd") and "_gen" not in p.name]


def dotted(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(module):
    """'core' for tinygrad_ext.core.tensor; None for the root and for other packages."""
    parts = module.split(".")
    return parts[1] if parts[0] == "tinygrad_ext" and len(parts) > 1 else None


def layer_of_name(name):
    """The layer that defines a name of the package's root."""
    if name in LEVEL:
        return name
    if name in registry.functions:
        return "ops"
    module = getattr(getattr(tg, name, None), "__module__", None) or ""
    return "core" if module == MODES else layer(module) or "core"


def arrows(path):
    """(line, layer) of everything a file imports from the package."""
    text, own = path.read_text(), dotted(path).split(".")
    found, roots = [], set()
    for m in ARROW.finditer(text):
        line = text.count("\n", 0, m.start()) + 1
        if m[1]:
            names = [n.split(" as ")[0].strip() for n in m[2].strip("() ").replace("\n", " ").split(",") if n.strip()]
            module = _absolute(m[1], own, path)
            targets = [layer_of_name(n) for n in names] if module == "tinygrad_ext" else [layer(module)]
            found += [(line, t) for t in targets]
        else:
            for part in m[3].split(","):
                module, _, alias = part.strip().partition(" as ")
                found.append((line, layer(module)))
                if module == "tinygrad_ext":
                    roots.add(alias or module)
    for root in roots:
        found += [
            (text.count("\n", 0, m.start()) + 1, layer_of_name(m[1]))
            for m in re.finditer(rf"(?<![\w.]){root}\.([A-Za-z]\w*)", text)
        ]
    return [(line, target) for line, target in found if target is not None]


def _absolute(module, own, path):
    dots = len(module) - len(module.lstrip("."))
    if not dots:
        return module
    base = own if path.stem == "__init__" else own[:-1]
    return ".".join([*base[: len(base) - dots + 1], *filter(None, [module[dots:]])])


def place(path):
    return path.relative_to(PACKAGE).parts[0].split(".")[0]


def test_every_part_of_the_package_has_a_layer():
    unknown = {place(p) for p in sources()} - set(LEVEL) - DOORS
    assert not unknown, f"say in LAYERS where these stand: {sorted(unknown)}"


def test_no_import_points_up():
    up = []
    for path in sources():
        here = place(path)
        if here in DOORS:
            continue
        up += [
            f"{path.relative_to(PACKAGE)}:{line}: {here} imports {target}"
            for line, target in arrows(path)
            if LEVEL[target] > LEVEL[here]
        ]
    assert not up, "\n".join(up)


@pytest.mark.parametrize(
    "code, expected",
    [
        ("from tinygrad_ext.nn import Module", "nn"),
        ("import tinygrad_ext.optim", "optim"),
        ("def f():\n    from tinygrad_ext import nn", "nn"),
        ("import tinygrad_ext as tg\nx = tg.zeros(2)", "ops"),
        ("from ..autograd import engine", "autograd"),
        ("from tinygrad_ext.ops.record cimport (\n    a,\n    b)", "ops"),
        ("from tinygrad_ext import float32", "core"),
    ],
)
def test_an_arrow_is_seen(code, expected, tmp_path):
    path = tmp_path / "tinygrad_ext" / "core" / "probe.py"
    path.parent.mkdir(parents=True)
    path.write_text(code)
    assert expected in [target for _, target in _arrows_below(path, tmp_path)]


def _arrows_below(path, root):
    global PACKAGE
    kept, PACKAGE = PACKAGE, root / "tinygrad_ext"
    try:
        return arrows(path)
    finally:
        PACKAGE = kept


def op_names():
    """Names of the table that mean nothing else in Python or among the dtypes."""
    names = {n for op in registry.ops.values() for n in (op.schema.name, op.schema.name + "_")}
    return names - set(dtypes) - set(dir(builtins))


# what may stand before a string that equals an op's name
_SLOT = re.compile(r"(?:slot\(|_slots\[|_readers\[)\s*$")
_FOREIGN = re.compile(r"(?:has|get)attr\(\w+, $")
_MESSAGE = re.compile(r"(?:checked_numel|reach|read_numbers|as_tensor_arg|_bad|_need_\w+)\([^\n]*$")
# words that are something else besides an op
_OTHER = {"cpu": "a device", "to": "an argument of random_", "bool_": "NumPy's name of a dtype"}


def strings(text):
    """(start, value) of the string literals in Cython source, comments and docstrings left out."""
    tokens = re.finditer(r'"""(?:.|\n)*?"""|#[^\n]*|[fru]*"([^"\n\\]*)"|[fru]*\'([^\'\n\\]*)\'', text)
    return [(m.start(), m[1] if m[1] is not None else m[2]) for m in tokens if m[1] is not None or m[2] is not None]


def test_core_and_autograd_spell_no_op():
    names, found = op_names(), []
    for path in sources():
        if place(path) not in ("core", "autograd") or path.name == "operators.pyx":
            continue
        text = path.read_text()
        for imported in re.findall(r"from tinygrad_ext import \(?([^\n)]*)", text):
            found += [f"{path.name}: imports {n}" for n in re.findall(r"\w+", imported) if n in names]
        for start, value in strings(text):
            line = text[text.rfind("\n", 0, start) + 1 : start]
            if value in names - set(_OTHER) and not any(p.search(line) for p in (_SLOT, _FOREIGN, _MESSAGE)):
                found.append(f"{path.name}:{text.count(chr(10), 0, start) + 1}: {value!r}")
    assert not found, "\n".join(found)
