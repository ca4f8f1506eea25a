"""Finds what is installed: reads entry points and imports nothing of them."""

import importlib.metadata
import json
import keyword
import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .model import DEVICES, FAILED, OVERRIDES, PLUGINS, SHADOWED, Plugin

_VALUE = re.compile(r"[A-Za-z_][\w.]*(\s*:\s*[A-Za-z_][\w.]*)?")
_NAME = re.compile(r"[A-Za-z]\w*(\.[\w.-]+)?", re.A)
_DEVICE = re.compile(r"[a-z][a-z0-9_]*")
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
    for name, version, location, dist, entries in _by_rank(_once(found)):
        made = _plugins_of(name, version, location, dist, entries)
        key = _plain(name)
        copy = key, version, os.path.realpath(location)
        if copy in taken:  # its folder stands on sys.path twice
            continue
        taken.add(copy)
        if first.setdefault(key, copy) != copy:
            _shadow(made, *first[key][1:])
        plugins += made
    return sorted(plugins, key=lambda p: (p.name, p.owner.distribution)), problems


def _plain(name):
    """A distribution's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _once(found):
    """The rows without the second view of an editable installation.

    `pip install -e` writes a .dist-info that names the project's folder. The build leaves an .egg-info in that folder,
    which is seen too when its sources stand on sys.path: by the .pth of the installation, by PYTHONPATH, or because
    Python was started there. It may be older than what was installed, so the .dist-info counts.
    """
    projects = [(_plain(name), project) for name, _, _, dist, _ in found if (project := _project(dist))]
    return [row for row in found if not (_is_egg(row[3]) and _is_below(_plain(row[0]), row[2], projects))]


def _is_egg(dist):
    return dist.read_text("PKG-INFO") is not None


def _is_below(name, location, projects):
    place = Path(os.path.realpath(location))
    return any(name == of and place.is_relative_to(project) for of, project in projects)


def _project(dist):
    """The folder from which a distribution was installed as editable, else None."""
    text = dist.read_text("direct_url.json")
    if not text:
        return None
    try:
        origin = json.loads(text)
        url = urlsplit(origin["url"]) if origin.get("dir_info", {}).get("editable") else None
    except (ValueError, KeyError, AttributeError, TypeError):  # damaged: then nothing says that it is editable
        return None
    if url is None or url.scheme != "file":
        return None
    path = unquote(url.path)
    return Path(os.path.realpath(path[1:] if re.match(r"/[A-Za-z]:", path) else path))


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
        elif line and line[0] not in "#;" and group in (PLUGINS, OVERRIDES, DEVICES):
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
    """Top-level modules of a distribution: by its own word, else from its list of files.

    The files of an editable installation are a finder and the like, those of an .egg-info the whole project's.
    """
    listed = (dist.read_text("top_level.txt") or "").split()
    if not listed and not _is_egg(dist):
        parts = [f.parts for f in dist.files or ()]
        listed = [p[0].partition(".")[0] for p in parts if len(p) > 1 or p[0].endswith((".py", ".so", ".pyd"))]
    return {n for n in listed if n.isidentifier() and not n.startswith("__editable__")}


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
    if group == DEVICES and not _DEVICE.fullmatch(name):
        return f"its entry point's name '{name}' is no device: write small letters, digits and _, such as example"
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
