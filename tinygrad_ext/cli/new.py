"""`plugins new`: writes a package from the templates beside this file."""

import datetime
import keyword
import re
from pathlib import Path

import click

from tinygrad_ext import plugins
from tinygrad_ext.cli.show import dump, facts
from tinygrad_ext.ops import is_part
from tinygrad_ext.registry.checks import RESERVED

TEMPLATES = Path(__file__).parent / "templates"


def run(name, *, kind, directory, as_json, parts=()):
    """Write the package and say how to go on."""
    check_name(name)
    target = Path(directory) / distribution(name)
    files = write(name, kind, target, parts)
    if as_json:
        return dump({"name": name, "distribution": distribution(name), "directory": str(target), "files": files})
    facts(f"{target}", [("wrote", f) for f in files])
    print(
        f"\nNext:\n  cd {target}\n  python -m pip install -e '.[test]'\n  python -m pytest\n  tinygrad-ext plugins list"
    )


def distribution(name):
    """Name of the distribution, and of its folder."""
    return "tgx-" + name.replace("_", "-")


def check_name(name):
    """click.BadParameter for what cannot be a namespace, or is one already."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        near = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")
        hint = f"; '{near}' would do" if near and not keyword.iskeyword(near) else ""
        raise click.BadParameter(
            f"'{name}' is no namespace: write small letters, digits and single underscores, beginning with a letter, "
            f"and no keyword of Python{hint}"
        )
    if name.startswith("tgx_"):
        raise click.BadParameter(f"'{name}': write '{name[4:]}'; the package is called {distribution(name[4:])}")
    if name in RESERVED or is_part(name):
        raise click.BadParameter(f"the namespace '{name}' belongs to tinygrad_ext: choose another name")
    for info in plugins.list():
        if name in info.namespaces:
            raise click.BadParameter(
                f"the namespace '{name}' is taken by {info.distribution} {info.version}, which is installed: choose "
                "another name, or uninstall it"
            )


def write(name, kind, target, parts=()):
    """Write the files below the folder `target`, which must not exist. Returns their paths, relative to it.

    The templates of a part come last; what they have for a file that is there is its end.
    """
    try:
        target.mkdir(parents=True)
    except OSError as error:  # never into what is there
        why = "it exists already" if isinstance(error, FileExistsError) else error.strerror
        raise click.BadParameter(f"the folder {target} cannot be made: {why}") from None
    words = {"PLUGIN_NAME": name, "PLUGIN_DIST": distribution(name), "PLUGIN_YEAR": str(datetime.date.today().year)}
    written = []
    for folder in (TEMPLATES / part for part in ("common", kind, *dict.fromkeys(parts))):
        for template in sorted(folder.rglob("*.in")):
            path = _filled(template.relative_to(folder).as_posix(), words).removesuffix(".in").replace("dot-", ".")
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as f:
                f.write(_filled(template.read_text(encoding="utf-8"), words))
            written.append(path)
    return sorted(set(written))


def _filled(text, words):
    for word, value in words.items():
        text = text.replace(word, value)
    return text
