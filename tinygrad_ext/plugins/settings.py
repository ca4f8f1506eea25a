"""Which plugins may be loaded. The first of these that says something about a plugin decides:

1. the program: `plugins.disable`, `plugins.enable`, `plugins.only`;
2. the environment: TINYGRAD_EXT_DISABLE_PLUGINS=c,d and TINYGRAD_EXT_PLUGINS=all|none|a,b;
3. the user's file `plugins.ini` in the folder of `config_folder()`: [plugins] load = ..., disable = ...

Without a word about it a plugin is enabled. Each of them may name a plugin, a namespace or a distribution; what it
disables it disables, whatever its list says. No file of the current folder is read: a cloned repository must not
choose what code runs.
"""

import os
import re
import sys
from pathlib import Path

chosen = {}  # the program's word: name -> bool
only = []  # innermost last: sets of names


def names_of(plugin):
    """Spellings that mean a plugin."""
    spelled = {plugin.name, plugin.owner.distribution, *plugin.namespaces}
    return {plain(name) for name in spelled}


def plain(name):
    """Names as pip compares them."""
    return re.sub(r"[-_]+", "-", name).lower()


def say(name, on):
    """The program's word about a plugin; the latest counts."""
    chosen.pop(plain(name), None)
    chosen[plain(name)] = on


def why_disabled(plugin):
    """Text, or None when the plugin may be loaded."""
    names = names_of(plugin)
    for say_of in (_program, _environment, _file):
        word = say_of(names)
        if word is not None:
            return word or None
    return None


def strict():
    """Whether a plugin's failure is raised."""
    return os.environ.get("TINYGRAD_EXT_STRICT_PLUGINS", "").strip().lower() not in ("", "0", "no", "false", "off")


# Each answers None (says nothing), "" (enabled) or why it is disabled.


def _program(names):
    if only:
        return "" if names & only[-1] else "plugins.only(...) names others"
    for name, on in reversed(chosen.items()):
        if name in names:
            return "" if on else f"the program disabled it: plugins.disable('{name}')"
    return None


def _environment(names):
    return _words(names, os.environ.get("TINYGRAD_EXT_PLUGINS"), os.environ.get("TINYGRAD_EXT_DISABLE_PLUGINS"), "env")


def _file(names):
    path = config_folder() / "plugins.ini"
    try:
        load, disable = _read(path)
    except (OSError, ValueError) as error:
        return f"{path} cannot be read, so nothing is loaded: {error}"
    return _words(names, load, disable, path)


_SPELLED = {"env": ("TINYGRAD_EXT_PLUGINS", "TINYGRAD_EXT_DISABLE_PLUGINS")}


def _words(names, load, disable, where):
    load_key, disable_key = _SPELLED.get(where, (f"load, in {where},", f"disable, in {where},"))
    if disable and names & split(disable):
        return f"{disable_key} names it: {disable.strip()}"
    if load is None:
        return None
    wanted = split(load)
    if "all" in wanted or names & wanted:
        return ""
    return f"{load_key} does not name it: {load.strip() or 'none'}"


def split(text):
    """The names in "a, b"; "none" and "" hold none."""
    return {plain(part) for part in re.split(r"[,\s]+", text) if part} - {"none"}


def _read(path):
    """(load, disable) of the file, None for what it does not say. ValueError with the line for what is no such file."""
    import configparser

    if not path.is_file():
        return None, None
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(path.read_text(encoding="utf-8"), str(path))
    except configparser.Error as error:
        raise ValueError(" ".join(str(error).split())) from None
    section = parser["plugins"] if parser.has_section("plugins") else {}
    if wrong := [*set(parser.sections()) - {"plugins"}, *set(section) - {"load", "disable"}]:
        raise ValueError(f"'{wrong[0]}' means nothing; it holds a section [plugins] with the keys load and disable")
    return section.get("load"), section.get("disable")


def config_folder():
    """The user's folder for settings of tinygrad_ext, by the habits of the system. It need not exist."""
    home = Path("~").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming") / "tinygrad_ext"
    given = os.environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(given):  # a relative one would depend on the current folder
        return Path(given) / "tinygrad_ext"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "tinygrad_ext"
    return home / ".config" / "tinygrad_ext"


def named():
    """Names that the environment and the file speak of, and where; for the warning about those that mean nothing."""
    out = []
    for key in ("TINYGRAD_EXT_PLUGINS", "TINYGRAD_EXT_DISABLE_PLUGINS"):
        out += [(name, key) for name in sorted(split(os.environ.get(key) or "") - {"all"})]
    return out
