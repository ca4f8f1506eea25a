"""Draws the package from its imports: `python -m tools.structure [--modules ROOM] [--svg FILE]`.

A room is a folder of the package or a module at its top. Arrows are read from the sources, `import` and `cimport` lines
of .py, .pyx, .pxd and .pxi files, those inside functions too. A name taken from the package itself
(`from tinygrad_ext import zeros`, `tg.zeros`) is an arrow to the room that defines it. Text goes to the terminal: one
line a room, lowest first, with the rooms it imports; circles and arrows inside functions below.
"""

import argparse
import ast
import re
from collections import defaultdict, namedtuple
from html import escape
from pathlib import Path

import tinygrad_ext as tg
from tinygrad_ext.registry import functions

PACKAGE = Path(tg.__file__).parent
# how: "top" for an import at the top of a file, "inside" for one in a function, "use" for `tg.zeros`
Arrow = namedtuple("Arrow", "path line module target how")
_CYTHON = re.compile(
    r"^([ \t]*)(?:from[ \t]+([\w.]+)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n#]+)|c?import[ \t]+([\w., ]+))", re.M
)
_BY_NAME = re.compile(r"import_module\(\s*[\"'](tinygrad_ext[\w.]+)[\"']")


# ---- reading -------------------------------------------------------------------------------------------------------


def sources(package=PACKAGE):
    """The files whose imports count; those of include/ are parts of extensions."""
    found = (p for p in sorted(package.rglob("*")) if p.suffix in (".py", ".pyx", ".pxd", ".pxi"))
    return [p for p in found if "_gen" not in p.name and p.parent.name != "include"]


def dotted(path, package=PACKAGE):
    """'tinygrad_ext.core.data.tensor' for its .pyx and its .pxd; a .pxi counts as the module that includes it."""
    parts = list(path.relative_to(package.parent).with_suffix("").parts)
    if path.suffix == ".pxi":
        parts[-1] = parts[-1].partition("_")[0]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module):
    """'ops' for 'tinygrad_ext.ops.view'; None for the package itself and for other packages. A folder in core too."""
    package, *parts = module.split(".")
    if package != "tinygrad_ext" or not parts:
        return None
    return ".".join(parts[:2]) if parts[0] == "core" and (PACKAGE / Path(*parts[:2])).is_dir() else parts[0]


def module_of_name(name):
    """The module that defines a name of the package's top: a room, an op, or what a module of ours brought."""
    if ((PACKAGE / name).is_dir() and name not in functions) or (PACKAGE / f"{name}.py").exists():
        return f"tinygrad_ext.{name}"
    if name in functions:
        return "tinygrad_ext.ops"
    module = getattr(getattr(tg, name, None), "__module__", None) or ""
    return module if room(module) else "tinygrad_ext.core.data"


def arrows(path, package=PACKAGE):
    """What a file imports from the package, as Arrows."""
    text, own = path.read_text(), dotted(path, package)
    package_of = own if path.stem == "__init__" else own.rpartition(".")[0]
    found = []
    for line, module, names, alias, how in (_python if path.suffix == ".py" else _cython)(text):
        if names is None:  # `import a.b`
            found.append((line, module, how))
            if module == "tinygrad_ext" and alias:
                used = re.finditer(rf"(?<![\w.])(?<!from ){alias}\.([A-Za-z]\w*)", _without_strings(text))
                found += [(text.count("\n", 0, m.start()) + 1, module_of_name(m[1]), "use") for m in used]
        else:
            base = _absolute(module, package_of)
            found += [(line, _target(base, name, package), how) for name in names]
    kept = {
        Arrow(path, line, own, target, how)
        for line, target, how in found
        if target != own and (room(target) or (target, how) == ("tinygrad_ext", "inside"))
    }
    return sorted(kept, key=lambda a: (a.line, a.target))


def _target(base, name, package):
    if base == "tinygrad_ext":
        return module_of_name(name)
    where = package.parent.joinpath(*base.split("."))
    if where.is_dir() and any((where / (name + end)).exists() for end in ("", ".py", ".pyx", ".pxd")):
        return f"{base}.{name}"
    return base


def _absolute(module, package_of):
    dots = len(module) - len(module.lstrip("."))
    if not dots:
        return module
    parts = package_of.split(".")
    return ".".join([*parts[: len(parts) - dots + 1], *filter(None, [module[dots:]])])


def _python(text):
    """(line, module, names, alias, how) of Python's imports; those that only type checkers see are none."""
    found = []

    def walk(node, how):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.ImportFrom):
                module = "." * child.level + (child.module or "")
                found.append((child.lineno, module, [a.name for a in child.names], None, how))
            elif isinstance(child, ast.Import):
                found.extend(
                    (child.lineno, a.name, None, a.asname or a.name.partition(".")[0], how) for a in child.names
                )
            walk(child, "inside" if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else how)

    walk(ast.parse(text), "top")
    by_name = [(text.count("\n", 0, m.start()) + 1, m[1], None, None, "inside") for m in _BY_NAME.finditer(text)]
    return found + by_name


def _cython(text):
    text = _without_strings(text)
    for m in _CYTHON.finditer(text):
        line, how = text.count("\n", 0, m.start()) + 1, "inside" if m[1] else "top"
        if m[2]:
            names = [n.split(" as ")[0].strip() for n in m[3].strip("() ").replace("\n", " ").split(",") if n.strip()]
            yield line, m[2], names, None, how
        else:
            for part in m[4].split(","):
                module, _, alias = part.strip().partition(" as ")
                yield line, module, None, alias or module.partition(".")[0], how


def _without_strings(text):
    """The text with docstrings and comments blanked, every line kept."""
    return re.sub(r'"""(?:.|\n)*?"""|#[^\n]*', lambda m: re.sub(r"[^\n]", " ", m[0]), text)


# ---- the graph -----------------------------------------------------------------------------------------------------


def all_arrows():
    """Every arrow of the package."""
    return [a for path in sources() for a in arrows(path)]


def graph(found, of=lambda module: module):
    """{node: the nodes it imports}, the node of a module being of(module); None is no node."""
    out = defaultdict(set, {of(dotted(p)): set() for p in sources()})
    out.pop(None, None)
    for a in found:
        here, there = of(a.module), of(a.target)
        if here is not None and there is not None and here != there:
            out[here].add(there)
    return dict(out)


def circles(links):
    """The sets of nodes that import each other, largest first (Tarjan's strongly connected components)."""
    number, low, stack, on, found = {}, {}, [], set(), []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        on.add(node)
        for other in links.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            group = set()
            while node not in group:
                group.add(stack.pop())
            on.difference_update(group)
            found.append(group)

    for node in sorted(links):
        if node not in number:
            visit(node)
    return sorted((sorted(g) for g in found if len(g) > 1), key=len, reverse=True)


def ranks(links):
    """{node: how many steps above the lowest}; the nodes of a circle share one."""
    group = {node: tuple(c) for c in circles(links) for node in c}
    above = defaultdict(set)
    for node, others in links.items():
        above[group.get(node, (node,))] |= {group.get(o, (o,)) for o in others} - {group.get(node, (node,))}
    known = {}

    def rank(g):
        if g not in known:
            known[g] = 1 + max((rank(o) for o in above[g]), default=-1)
        return known[g]

    return {node: rank(group.get(node, (node,))) for node in links}


# ---- drawing -------------------------------------------------------------------------------------------------------


def as_text(links):
    """One line a node, lowest first: its rank, its name, what it imports; `~` marks members of a circle."""
    level, looped = ranks(links), {n for c in circles(links) for n in c}
    width = max(map(len, links))
    for node in sorted(links, key=lambda n: (level[n], n)):
        mark = "~" if node in looped else " "
        yield f"{level[node]:3} {mark}{node:{width}}  {' '.join(sorted(links[node]))}".rstrip()


def as_svg(links):
    """Nodes in rows by rank, arrows that point down in grey, those of a circle in red."""
    level, group = ranks(links), {n: i for i, c in enumerate(circles(links)) for n in c}
    rows = defaultdict(list)
    for node in sorted(links):
        rows[level[node]].append(node)
    wide, high = 130 * max(map(len, rows.values())) + 20, 70 * len(rows) + 20
    at = {
        node: (wide * (i + 0.5) / len(row), high - 35 - 70 * r) for r, row in rows.items() for i, node in enumerate(row)
    }
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" font-family="sans-serif">']
    for node, others in sorted(links.items()):
        for other in sorted(others):
            looped = node in group and group[node] == group.get(other)
            (x, y), (u, v) = at[node], at[other]
            bend = 30 if v == y else 0
            out.append(
                f'<path d="M{x:.0f} {y + 12:.0f}Q{(x + u) / 2:.0f} {(y + v) / 2 + bend:.0f} {u:.0f} {v - 12:.0f}" '
                f'fill="none" stroke="{"#c22" if looped else "#bbb"}"/>'
            )
    for node, (x, y) in at.items():
        out.append(
            f'<rect x="{x - 60:.0f}" y="{y - 12:.0f}" width="120" height="24" rx="4" fill="#fff" stroke="#444"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" font-size="12" text-anchor="middle">{escape(node)}</text>'
        )
    return "\n".join([*out, "</svg>", ""])


def main(argv=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modules", metavar="ROOM", help="the modules of one room instead of the rooms")
    parser.add_argument("--svg", metavar="FILE", help="write a picture too")
    options = parser.parse_args(argv)
    found = all_arrows()
    of = room
    if options.modules:
        root = f"tinygrad_ext.{options.modules}"
        of = lambda module: module.removeprefix(root + ".") if module.startswith(root + ".") else None
    links = graph(found, of)
    print("\n".join(as_text(links)))
    inside = {(a.path, a.line) for a in found if a.how == "inside" and of(a.module) is not None}
    print(f"\n{len(links)} nodes, {sum(map(len, links.values()))} arrows; {len(inside)} imports stand inside functions")
    for circle in circles(links):
        print(f"circle of {len(circle)}: {' '.join(circle)}")
    if options.svg:
        Path(options.svg).write_text(as_svg(links))


if __name__ == "__main__":
    main()
