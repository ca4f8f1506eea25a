"""The page of a profile in a real browser, Chromium without a window: it draws, zooms, sorts, finds, and says no error.

Not among the tests of each run: `make browser` runs it, and skips it where there is no browser (Debian: apt-get install
chromium-headless-shell). The screenshots stay in build/profile.
"""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.profiler import profile, record_function

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
FOLDER = Path(__file__).parents[2] / "build" / "profile"
pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no browser: none of {', '.join(NAMES)} is installed")

# what a user does, with what is seen after each step
USES = """
<script>
const boxes = () => [...document.querySelectorAll(".chart i")], told = {};
told.drawn = boxes().length;
told.names = [...new Set(boxes().map(b => b.title.split(",")[0]))];
told.charts = document.querySelectorAll(".chart").length;
told.wide = Math.max(...boxes().map(b => b.getBoundingClientRect().right)) <= document.documentElement.clientWidth + 1;
const target = boxes().find(b => b.title.startsWith("forward"));
const before = target.getBoundingClientRect().width;
target.click();
told.grown = boxes().find(b => b.title.startsWith("forward")).getBoundingClientRect().width / before;
told.note = document.getElementById("note").textContent;
document.getElementById("chart0").click();
told.back = boxes().length;
const find = document.getElementById("find");
find.value = "conv2d"; find.dispatchEvent(new Event("input"));
told.dimmed = boxes().filter(b => b.className === "dim").length;
find.value = ""; find.dispatchEvent(new Event("input"));
const cell = (row, i) => i ? +row.cells[i].dataset.value : row.cells[0].textContent;
const column = i => [...document.querySelectorAll("tbody tr")].map(row => cell(row, i));
document.querySelectorAll("th")[1].click();
told.calls = column(1);
document.querySelectorAll("th")[0].click();
told.sorted = column(0);
told.memory = (document.querySelector("#memory path") || {getAttribute: () => ""}).getAttribute("d").length;
told.errors = errors;
document.body.dataset.told = JSON.stringify(told);
</script>
"""
ERRORS = "<script>const errors = []; window.onerror = message => { errors.push(message); };</script>"


@pytest.fixture(scope="module")
def page():
    """A page of eager and compiled training, with the uses at its end."""
    tg.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    optimizer = tg.optim.SGD(model.parameters(), lr=0.1)
    x, y = tg.rand(5, 1, 8, 8), tg.tensor([0, 1, 2, 0, 1])
    traced = tg.jit.trace(model, (x,))
    with tg.no_grad():
        traced(x)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as p:
        for _ in range(3):
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        with tg.no_grad():
            traced(x)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "profile.html"
    p.export_html(path)
    return path, p


def run(path, *options):
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1200,1400",
        *options,
        f"file://{path}",
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def test_the_page_draws_zooms_finds_and_sorts(page):
    path, p = page
    used = FOLDER / "used.html"
    used.write_text(path.read_text().replace("<body>", "<body>" + ERRORS) + USES)
    dom = run(used, "--dump-dom")
    told = json.loads(unescape(re.search(r'data-told="([^"]*)"', dom)[1]))
    events = p.events()
    assert not told["errors"] and told["charts"] == 1 and told["wide"]
    assert 0 < told["drawn"] <= len(events) and told["back"] == told["drawn"]
    assert {"forward", "plan::Sequential", "aten::conv2d"} <= set(told["names"])
    assert told["grown"] > 1.5 and told["note"].startswith("forward, ") and "full_browser.py" in told["note"]
    assert 0 < told["dimmed"] < told["drawn"]
    rows = p.key_averages()
    assert told["calls"] == sorted((r.count for r in rows), reverse=True)
    assert sorted(told["sorted"]) == sorted(r.key for r in rows)
    assert told["memory"] > 100


def test_a_screenshot_shows_colours_where_slices_are(page):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")
    path, _ = page
    shot = FOLDER / "profile.png"
    run(path, f"--screenshot={shot}")
    seen = {colour for _, colour in image.open(shot).convert("RGB").getcolors(1 << 24)}
    assert {(0x8A, 0xB4, 0xD8), (0xE5, 0xC0, 0x7B), (0xC3, 0x9B, 0xD3)} <= seen
