"""Installed distributions that look like plugins and declare none: a group misspelt, or left out.

Looked for only where somebody misses one (an unknown name, `plugins list` and `plugins doctor`), because that takes the
metadata of everything that is installed.
"""

import difflib
import functools
import importlib.metadata
import re
from typing import NamedTuple

from .model import DEVICES, OVERRIDES, PLUGINS

GROUPS = (PLUGINS, OVERRIDES, DEVICES)
_OURS = re.compile(r"requires-dist:\s*tinygrad[-_.]ext\b", re.I)


class Undeclared(NamedTuple):
    """A distribution that may have meant to declare a plugin.

    names: what it may be called. sure: whether a group is misspelt, or its name is that of a plugin; else it may be a
    program that uses tinygrad_ext. text: what is wrong, and what to do.
    """

    distribution: str
    version: str
    names: tuple
    sure: bool
    text: str


def find(name=None):
    """All of them, sorted; or those that may be meant by a name."""
    return [one for one in _all() if name is None or _plain(name) in one.names]


@functools.cache
def _all():
    """What is installed is read once, until `forget`."""
    found = {}
    for dist in importlib.metadata.distributions():
        try:
            one = _examine(dist)
        except Exception:  # damaged metadata is told by the scan
            continue
        if one is not None:
            found.setdefault(_plain(one.distribution), one)
    return sorted(found.values())


forget = _all.cache_clear


def _examine(dist):
    groups = _groups(dist.read_text("entry_points.txt") or "")
    near = [(group, ours) for group in groups if group not in GROUPS and (ours := _nearest(group))]
    if not near and any(groups.get(group) for group in GROUPS):
        return None
    metadata = (dist.read_text("METADATA") or dist.read_text("PKG-INFO") or "").partition("\n\n")[0]
    name, version = _field(metadata, "name"), _field(metadata, "version")
    needs_us = _OURS.search(metadata) is not None or name.lower().startswith(("tgx-", "tgx_"))
    if not name or _plain(name) == "tinygrad-ext" or not (near or needs_us):
        return None
    names = {_plain(name), _plain(name).removeprefix("tgx-")}
    for group, _ in near:
        names |= {_plain(part) for entry in groups[group] for part in (entry, entry.partition(".")[0])}
    wrong, right = near[0] if near else ("", "")
    sure = bool(near) or _plain(name).startswith("tgx-")
    return Undeclared(name, version, tuple(sorted(names)), sure, _text(f"{name} {version}".strip(), name, wrong, right))


def _text(title, name, wrong, right):
    if right:
        return (
            f"{title} is installed, and its entry points stand in the group '{wrong}', which is none of "
            f"tinygrad_ext's; did its author mean '{right}'? Correct it in pyproject.toml and install it again"
        )
    entry = _plain(name).removeprefix("tgx-").replace("-", "_")
    return (
        f"{title} is installed and declares no plugin: its author adds to pyproject.toml "
        f'[project.entry-points."{PLUGINS}"] with a line such as {entry} = "{_plain(name).replace("-", "_")}.plugin", '
        f"or the group {OVERRIDES}, and installs it again; if it is no plugin, all is well"
    )


def _groups(text):
    """{group: names of its entries}"""
    groups, names = {}, []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            names = groups.setdefault(line.strip("[] "), [])
        elif line and line[0] not in "#;":
            names.append(line.partition("=")[0].strip())
    return groups


def _nearest(group):
    """The group of ours that a group nearly is, or ""."""
    spelled = {re.sub(r"[^a-z]+", "_", ours): ours for ours in GROUPS}
    least = 0.3 if group.lower().startswith("tinygrad") else 0.8
    near = difflib.get_close_matches(re.sub(r"[^a-z]+", "_", group.lower()), spelled, 1, least)
    return spelled[near[0]] if near else ""


def _field(metadata, key):
    found = re.search(rf"^{key}:(.*)$", metadata, re.I | re.M)
    return found[1].strip() if found else ""


def _plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()
