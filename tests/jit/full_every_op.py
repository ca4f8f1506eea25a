"""All samples of every op in every dtype, as test_every_op.py has the first ones; two minutes. `make every-way` runs it
and prints what was counted."""

from collections import Counter

import pytest
from ways import BY_SIZE, EXEMPT, batches, check_sizes, check_ways, samples

from tinygrad_ext.testing import sweep

OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops()}
NAMES = sorted(n for n, op in OPS.items() if not sweep.tagged(op, "unset"))
pytestmark = pytest.mark.filterwarnings("ignore")
COUNTS = Counter()


@pytest.fixture(scope="module", autouse=True)
def _told():
    yield
    print(f"\n{len(OPS)} ops; unset results: {', '.join(sorted(set(OPS) - set(NAMES)))}")
    for kind, rows in EXEMPT.items():
        print(f"not by {kind}: {len(rows)}", *(f"  {name}: {why}" for name, why in rows.items()), sep="\n")
    print("captured again at other sizes:", *(f"  {name}: {why}" for name, why in BY_SIZE.items()), sep="\n")
    print(*(f"{count} {what}" for what, count in COUNTS.items()), sep="\n")


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_is_the_same_in_every_way(name):
    for call in samples(OPS[name], every=True):
        check_ways(call, name)
        COUNTS["samples in every way"] += 1


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(EXEMPT["trace"])))
def test_traced_at_two_runs_at_one_three_and_seventeen(name):
    for call in samples(OPS[name]):
        for made in batches(call):
            COUNTS["dimensions traced at 2 and run at 1, 3 and 17"] += 1
            COUNTS["graphs captured again"] += check_sizes(call, name, made)
