"""The reference pages are fresh, and every Python snippet of the hand-written pages runs."""

import re
from pathlib import Path

import pytest

from tools import docs

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if docs.FOLDER not in p.parents)]
FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```", re.M | re.S)


def snippets(page):
    """(line number, code) of a page's blocks that are meant to run."""
    text = page.read_text()
    return [(text.count("\n", 0, m.start(2)) + 1, m[2]) for m in FENCE.finditer(text) if "no-run" not in m[1]]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_snippets_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)             # snippets may save files
    blocks = snippets(page)
    if not blocks:
        pytest.skip("no Python on this page")
    names = {"__name__": "__page__"}
    for line, code in blocks:
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_reference_is_fresh():
    assert not docs.stale(), "run python -m tools.docs"


def test_every_op_has_a_section():
    from tinygrad_ext import registry

    text = "".join(docs.render().values())
    for op in registry.ops.values():
        if op.record.owner == "tinygrad_ext":
            assert f"## {op.name.partition('::')[2]}\n" in text
