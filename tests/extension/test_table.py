"""Functions of the table that no other sample calls: ranges, random bits, Ctrl-C, threads, nodes by name."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.profiler import profile

SOURCE = """
#include <signal.h>

#define KERNEL(name) static int name(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m)

static tgx_op *named;

KERNEL(ranges) {
    tgx->range_begin(c, "outer part");
    tgx->range_begin(c, "inner part");
    out[0].tag = TGX_BOOL, out[0].u.i = tgx->interface("no such table", 1) == NULL;
    tgx->range_end(c, "inner part");
    tgx->range_end(c, "outer part");
    return 0;
}
KERNEL(bits) {
    uint64_t x[3];
    tgx_generator *g = in[0].tag == TGX_GENERATOR ? in[0].u.g : NULL;
    int64_t *made = tgx->memory(c, 3 * sizeof(int64_t));
    if (made == NULL || tgx->random_bits(c, g, x, 3)) return -1;
    for (int i = 0; i < 3; i++) made[i] = (int64_t)x[i];
    out[0].tag = TGX_INTS, out[0].count = 3, out[0].u.is = made;
    return 0;
}
KERNEL(sequence) {
    uint64_t first = tgx->next_sequence(c);
    out[0] = tgx_of_int((int64_t)(tgx->next_sequence(c) - first));
    return 0;
}
KERNEL(endless) {
    raise(SIGINT);
    for (int i = 0; i < 1000000; i++)
        if (tgx->interrupted(c)) return -1;
    return 0;
}
typedef struct { const double *x; double *y; } job;
static int half(void *told, int64_t low, int64_t high) {
    job *j = told;
    for (int64_t i = low; i < high; i++) j->y[i] = j->x[i] / 2;
    return 0;
}
static int fails(void *told, int64_t low, int64_t high) { return low <= 5000 && 5000 < high ? -1 : 0; }
KERNEL(halves) {
    tgx_view x, y;
    if ((out[0].u.t = tgx->empty_like(c, in[0].u.t, 0)) == NULL) return -1;
    out[0].tag = TGX_TENSOR;
    if (tgx->view(c, in[0].u.t, &x) || tgx->view_mut(c, out[0].u.t, &y)) return -1;
    job j = {x.data, y.data};
    if (in[1].u.i)
        return tgx->parallel_for(c, fails, NULL, tgx_count(&x), 100) ? tgx->fail(c, "OSError", "a part failed") : 0;
    return tgx->parallel_for(c, half, &j, tgx_count(&x), 100);
}
KERNEL(through) { return tgx->call(c, named, in, n, out, m); }

static int init(tgx_ctx *c) {
#define OP(text, fn, more) \\
    if (tgx->register_op(c, &TGX_OP(.schema = "probe::" text, .kernel = fn, .flags = more))) return -1;
    OP("ranges() -> bool", ranges, 0)
    OP("bits(Generator? g=None) -> int[]", bits, 0)
    OP("sequence() -> int", sequence, 0)
    OP("endless() -> ()", endless, 0)
    OP("halves(Tensor x, bool failing=False) -> Tensor", halves, TGX_DENSE)
    OP("through(Tensor x, bool failing=False) -> Tensor", through, TGX_COMPOSITE)
    return (named = tgx->resolve(c, "probe::halves")) == NULL ? -1 : 0;
}
TGX_EXTENSION("probe", "1", init)
"""


@pytest.fixture
def probe(inline):
    inline(SOURCE, extra_cflags=["-DTGX_TARGET_MINOR=1"])
    return tg.ops.probe


def test_ranges_are_seen_by_a_profiler_inside_the_op(probe):
    with profile() as prof:
        assert probe.ranges() is True  # there is no table of that name
    found = {e.name: e for e in prof.events()}
    op, outer, inner = found["probe::ranges"], found["outer part"], found["inner part"]
    assert inner.cpu_parent is outer and outer.cpu_parent is op


def test_random_bits_follow_the_seed(probe):
    g = tg.Generator()
    drawn = []
    for source in (g, None):
        for _ in range(2):
            (tg if source is None else g).manual_seed(7)
            drawn.append(probe.bits(source))
    assert drawn[0] == drawn[1] and drawn[2] == drawn[3] and len(set(drawn[0])) == 3


def test_numbers_of_steps_rise(probe):
    assert probe.sequence() == 1


def test_ctrl_c_ends_a_kernel_that_asks(probe):
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            probe.endless()


def test_threads_of_the_package_work_and_fail_together(probe):
    x = tg.rand(100_000, dtype=tg.float64)
    for _ in range(9):
        assert probe.halves(x).equal(x / 2)
    with pytest.raises(OSError, match="a part failed"):
        probe.halves(x, True)


def test_a_composite_adds_nodes_by_name(probe):
    traced = tg.jit.trace(probe.through, (tg.ones(3, dtype=tg.float64),))
    assert "probe::halves" in str(traced.graph) and traced(tg.full((2,), 4.0, dtype=tg.float64)).tolist() == [2, 2]
