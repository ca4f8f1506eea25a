"""Finds what is installed: reads entry points and imports nothing of them."""

import importlib.metadata
import keyword
import re

from .model import FAILED, OVERRIDES, PLUGINS, SHADOWED, Plugin

_VALUE = re.compile(r"[A-Za-z_][\w.]*(\s*:\s*[A-Za-z_][\w.]*)?")
_NAME = re.compile(r"[A-Za-z]\w*(\.[\w.-]+)?", re.A)
_PREFIX = re.compile(r"[A-Za-z_]\w*(\.\w+)*")


def scan():
    """(plugins, problems): sorted by name, then distribution; texts about metadata that cannot be read."""
    found, problems = [], []
    for dist in importlib.metadata.distributions():
        try:
            entries = _entries(dist.read_text("entry_points.txt") or "")
            if entries:
                found.append((*_identity(dist), _location(dist), dist, entries))
        except Exception as error:  # one damaged folder hides no other
            problems.append(f"the entry points of {_location(dist)} cannot be read: {type(error).__name__}: {error}")
    plugins, first, taken = [], {}, set()
    for name, version, location, dist, entries in _by_rank(found):
        made = _plugins_of(name, version, location, dist, entries)
        key = re.sub(r"[-_.]+", "-", name).lower()
        copy = key, version, location
        if copy in taken:  # its folder stands on sys.path twice
            continue
        taken.add(copy)
        if first.setdefault(key, copy) != copy:
            _shadow(made, *first[key][1:])
        plugins += made
    return sorted(plugins, key=lambda p: (p.name, p.owner.distribution)), problems


def _by_rank(found):
    """The first on sys.path wins, as in an import; of two in one folder the higher version, whatever the disk says."""
    places = {}
    for row in found:
        places.setdefault(row[2], len(places))
    ranked = sorted(found, key=lambda row: [int(n) for n in re.findall(r"\d+", row[1])], reverse=True)
    return sorted(ranked, key=lambda row: places[row[2]])


def _entries(text):
    """(group, name, value) of the entry points in our groups. ValueError for a line that is none."""
    group, found = "", []
    for line in text.splitlines() if "tinygrad_ext." in text else ():
        line = line.strip()
        if line.startswith("["):
            group = line.strip("[] ")
        elif line and line[0] not in "#;" and group in (PLUGINS, OVERRIDES):
            name, equals, value = line.partition("=")
            if not equals:
                raise ValueError(f"'{line}' is no 'name = module'")
            found.append((group, name.strip(), value.strip()))
    return found


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


def _plugins_of(distribution, version, location, dist, entries):
    """One Plugin for each module or object named; an entry point of either group may lead to the same one."""
    made = {}
    for group, name, value in sorted(entries, key=lambda e: (e[0] != PLUGINS, e)):
        value = re.sub(r"\s*\[.*\]$", "", value)
        plugin = made.get(value)
        if plugin is None:
            plugin = made[value] = Plugin(name, value, distribution, version, location, tops=lambda: _tops(dist))
        plugin.declare(group, name)
        if problem := _problem(group, name, value):
            plugin.problem = (FAILED, problem)
    return list(made.values())


def _problem(group, name, value):
    if not _VALUE.fullmatch(value):
        return f"its entry point {name} = {value} does not name a module or module:object"
    if group == PLUGINS and (not _NAME.fullmatch(name) or keyword.iskeyword(name.partition(".")[0])):
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
