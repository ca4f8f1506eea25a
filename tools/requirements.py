"""Prints what pyproject.toml says is needed: `python tools/requirements.py build test` for pip's command line.

`build` is what the build and the package itself need; every other word is an extra. Extras name each other as
tinygrad_ext[cli], which pip could only follow by installing the package, too.
"""

import re
import sys
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10: pip brings the module from which it was made
    from pip._vendor import tomli as tomllib

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(*wanted):
    """The requirements of these groups, each once."""
    table = tomllib.loads(PROJECT.read_text())
    extras = table["project"]["optional-dependencies"]
    groups = {**extras, "build": table["build-system"]["requires"] + table["project"]["dependencies"]}
    found = []
    for group in wanted:
        for requirement in groups[group]:
            inner = re.fullmatch(r"tinygrad_ext\[([\w, -]+)\]", requirement)
            found += requirements(*re.split(r"\s*,\s*", inner[1])) if inner else [requirement]
    return list(dict.fromkeys(found))


if __name__ == "__main__":
    print("\n".join(requirements(*sys.argv[1:])))
