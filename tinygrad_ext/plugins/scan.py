"""Finds what is installed: reads entry points and imports nothing of them."""

import importlib.metadata
import re

from .model import OVERRIDES, PLUGINS, SHADOWED, Plugin

_VALUE = re.compile(r"[A-Za-z_][\w.]*(\s*:\s*[A-Za-z_][\w.]*)?")
_NAME = re.compile(r"[A-Za-z]\w*(\.[\w.-]+)?", re.A)
_PREFIX = re.compile(r"[A-Za-z_]\w*(\.\w+)*")


def scan():
    """(plugins, problems): sorted by name, then distribution; texts about metadata that cannot be read."""
    found, problems = [], []
    for place, dist in enumerate(importlib.metadata.distributions()):
        try:
            entries = _entries(dist)
            if entries:
                found.append((_identity(dist), place, dist, entries))
        except Exception as error:  # one damaged folder hides no other
            problems.append(f"the entry points of {_location(dist)} cannot be read: {type(error).__name__}: {error}")
    plugins, seen = [], {}
    for (name, version), _, dist, entries in sorted(_by_rank(found), key=lambda row: row[1]):
        made = _plugins_of(name, version, dist, entries)
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen:
            _shadow(made, *seen[key])
        else:
            seen[key] = version, _location(dist)
        plugins += made
    return sorted(plugins, key=lambda p: (p.name, p.owner.distribution, p.state)), problems


def _by_rank(found):
    """The first on sys.path wins, as in an import; of two in one folder the higher version, whatever the disk says."""
    places = {}
    for row in found:
        places.setdefault(_location(row[2]), row[1])
    numbers = lambda text: [int(n) for n in re.findall(r"\d+", text or "")]
    ranked = sorted(found, key=lambda row: numbers(row[0][1]), reverse=True)
    ranked.sort(key=lambda row: places[_location(row[2])])
    return [(identity, rank, dist, entries) for rank, (identity, _, dist, entries) in enumerate(ranked)]


def _entries(dist):
    text = dist.read_text("entry_points.txt")
    if not text or "tinygrad_ext." not in text:
        return []
    return [e for e in dist.entry_points if e.group in (PLUGINS, OVERRIDES)]


def _identity(dist):
    """(name, version), read line by line: a parse as e-mail takes ten times as long."""
    text = dist.read_text("METADATA") or dist.read_text("PKG-INFO") or ""
    fields = {}
    for line in text.splitlines():
        if not line.strip():
            break
        key, _, value = line.partition(":")
        fields.setdefault(key.lower(), value.strip())
    return fields.get("name") or f"unnamed distribution in {_location(dist)}", fields.get("version", "")


def _location(dist):
    return str(dist.locate_file(""))


def _tops(dist):
    """Top-level modules of a distribution, from its list of files."""
    parts = [f.parts for f in dist.files or ()]
    names = {p[0].partition(".")[0] for p in parts if len(p) > 1 or p[0].endswith((".py", ".so", ".pyd"))}
    return {n for n in names if n.isidentifier()}


def _plugins_of(name, version, dist, entries):
    """One Plugin for each module or object named; an entry point of either group may lead to the same one."""
    made = {}
    for e in sorted(entries, key=lambda e: (e.group != PLUGINS, e.name)):
        value = re.sub(r"\s*\[.*\]$", "", e.value)
        plugin = made.get(value)
        if plugin is None:
            plugin = made[value] = Plugin(e.name, value, name, version, _location(dist), tops=lambda: _tops(dist))
        plugin.declare(e.group, e.name)
        if problem := _problem(e.group, e.name, value):
            plugin.problem = ("failed", problem)
    return list(made.values())


def _problem(group, name, value):
    if not _VALUE.fullmatch(value):
        return f"its entry point {name} = {value} does not name a module or module:object"
    if group == PLUGINS and not _NAME.fullmatch(name):
        return f"its entry point's name '{name}' is no namespace: write a name such as vision or vision.extra"
    if group == OVERRIDES and not _PREFIX.fullmatch(name):
        return f"its entry point's name '{name}' is no prefix of a module: write a name such as scipy.sparse"
    return None


def _shadow(plugins, version, location):
    for p in plugins:
        p.problem = (
            SHADOWED,
            f"{p.owner.distribution} is installed twice: version {version} in {location} comes first, and this copy, "
            f"version {p.owner.version}, in {p.location} is not looked at. Uninstall it until none is left, and "
            "install it again",
        )
