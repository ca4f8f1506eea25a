"""The reference pages are fresh, and every Python snippet of the hand-written pages runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import docs

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if docs.FOLDER not in p.parents)]
FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```", re.M | re.S)

RUN = """
import json, linecache, sys
names = {"__name__": "__page__", "__file__": sys.argv[1]}
blocks, text = json.load(sys.stdin), []
for line, code in blocks:  # the page as Python sees it, for what reads source
    text += [""] * (line - 1 - len(text)) + code.splitlines()
linecache.cache[sys.argv[1]] = (len(text), None, [row + "\\n" for row in text], sys.argv[1])
for line, code in blocks:
    exec(compile("\\n" * (line - 1) + code, sys.argv[1], "exec"), names)
"""


def snippets(page):
    """(line number, code) of a page's blocks that are meant to run."""
    text = page.read_text()
    return [(text.count("\n", 0, m.start(2)) + 1, m[2]) for m in FENCE.finditer(text) if "no-run" not in m[1]]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_snippets_of_a_page_run_in_order(page, tmp_path):
    blocks = snippets(page)
    if not blocks:
        pytest.skip("no Python on this page")
    # a process of its own, and a folder: snippets register ops and save files
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN, str(page)],
        input=json.dumps(blocks),
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_reference_is_fresh():
    assert not docs.stale(), "run python -m tools.docs"


def test_every_op_has_a_section():
    from tinygrad_ext import registry
    from tinygrad_ext.ops.record import BUILTIN

    text = "".join(docs.render().values())
    for op in registry.ops.values():
        if op.record.owner == BUILTIN:
            assert f"## {op.name.partition('::')[2]}\n" in text


def test_every_hook_has_a_page_with_an_example():
    from tinygrad_ext.plugins.hooks import REGISTRARS

    for hook in REGISTRARS:
        page = ROOT / "docs" / "hooks" / f"{hook}.md"
        assert any(f"def {hook}(" in code for _, code in snippets(page)), f"{hook} has no page with an example"


def test_the_page_of_the_command_line_names_every_command():
    from tinygrad_ext.cli.app import app

    text = (ROOT / "docs" / "command_line.md").read_text()
    for name, group in app.commands.items():
        for leaf in getattr(group, "commands", {"": None}):
            assert f"| `{name} {leaf}".rstrip() in text, f"{name} {leaf}"


def test_a_word_has_one_meaning():
    """One row for each word; those that a row brings along in italics are no rows of their own."""
    rows = [line.strip("|").split(" | ") for line in (ROOT / "docs" / "words.md").read_text().splitlines()[6:]]
    words = [word.strip() for row in rows for word in row[0].split(",")]
    words += [word for row in rows for word in re.findall(r"\*(\w[\w ]*)\*", row[1])]
    assert len(words) > 20 and sorted(words) == sorted(set(words))
