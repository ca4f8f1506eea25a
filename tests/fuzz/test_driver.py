"""The fuzzer outlives what it finds: every case is done, what ends a process is noted, each finding can be replayed."""

from collections import Counter

import pytest

from tools.fuzz import __main__ as command
from tools.fuzz import driver, findings
from tools.fuzz.case import generator, module_of

TARGET = "tests.helpers.fuzz_faults"
SEED, CASES = 26, 40


def ways(count):
    """How each of the first cases goes."""
    return [module_of(TARGET).case(generator(TARGET, SEED, n)).way for n in range(count)]


def run(folder, cases, *, resume=False):
    """(row of the state, findings) after some cases."""
    state = driver.State(folder / "state.json", resume)
    found = findings.Findings(folder)
    campaign = driver.Campaign(TARGET, SEED, state, found, jobs=1, block=15)
    campaign.run(None, cases)
    return campaign.row, found


@pytest.mark.slow
def test_every_case_is_done_whatever_the_others_do(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "PATIENCE", 1)
    expected = Counter(ways(CASES))
    assert set(expected) == {"well", "fault", "death", "sleep"}  # else another SEED
    row, found = run(tmp_path, CASES)
    assert row["cases"] == CASES and row["faults"] == CASES - expected["well"]
    counts = {kind.split(" | ")[1]: entry["count"] for kind, entry in found.kinds.items()}
    assert counts == {
        "this one is wrong": expected["fault"],
        "crash: SIGABRT": expected["death"],
        "no end after N s": expected["sleep"],
    }
    for path in tmp_path.glob("*.py"):
        target, seed, number, first = findings.read(path)
        assert (target, seed) == (TARGET, SEED) and first <= number
        assert f"# {ways(CASES)[number]}\n" in path.read_text()  # the case itself, though its process died


@pytest.mark.slow
def test_a_run_is_resumed_after_the_last_case(tmp_path):
    well = next(n for n, way in enumerate(ways(CASES)) if way in ("death", "sleep"))
    run(tmp_path, 2)
    row, _ = run(tmp_path, well - 2, resume=True)
    assert row["next"] == row["cases"] == well


def test_one_command_replays_a_finding(tmp_path, capsys):
    number = ways(CASES).index("fault")
    path = tmp_path / "finding.py"
    path.write_text(f"# case: {TARGET} {SEED} {number} from {number}\n")
    assert command.main(["--replay", str(path)]) == 1
    assert "this one is wrong" in capsys.readouterr().out


def test_equal_faults_are_counted_and_kept_once_or_twice(tmp_path):
    found = findings.Findings(tmp_path)
    for number in range(5):
        found.add("ops", 0, {"number": number, "what": f"wrong by {number}", "trace": "", "text": "x\n", "from": 0})
    assert [row["count"] for row in found.kinds.values()] == [5]
    assert len(list(tmp_path.glob("*.py"))) == findings.KEPT
