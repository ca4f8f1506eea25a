"""What an extension keeps in the state of its nodes is let go of once, whatever becomes of the node."""

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.utils import cpp_extension

SOURCE = """
#include <stdlib.h>
static int64_t alive;
static int twice(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    tgx_view x, y;
    if (tgx->view(c, in[0].u.t, &x) || (out[0].u.t = tgx->empty_like(c, in[0].u.t, 0)) == NULL) return -1;
    out[0].tag = TGX_TENSOR;
    if (tgx->view_mut(c, out[0].u.t, &y)) return -1;
    for (int64_t i = 0; i < tgx_count(&x); i++) ((float *)y.data)[i] = 2 * ((float *)x.data)[i];
    return 0;
}
static int setup(tgx_ctx *c, void *self, tgx_node *node, void *state, const tgx_value *in, int32_t n,
                 const tgx_value *out, int32_t m) {
    *(void **)state = malloc(16);
    alive++;
    return tgx->save(c, node, 0, in[0].u.t);
}
static void release(void *state) {
    free(*(void **)state);
    alive--;
}
static int back(tgx_ctx *c, tgx_node *node, void *state, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                int32_t m) {
    tgx_value in = tgx_of_tensor(grads[0]), out = {TGX_NONE, 0, {0}};
    if (twice(c, NULL, &in, 1, &out, 1)) return -1;
    inputs[0] = out.u.t;
    return 0;
}
static int count(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    out[0] = tgx_of_int(alive);
    return 0;
}
static int init(tgx_ctx *c) {
    return tgx->register_op(c, &TGX_OP(.schema = "kept::twice(Tensor x) -> Tensor", .kernel = twice, .setup = setup,
                                       .backward = back, .release = release, .saved = 1, .state_size = BYTES)) ||
           tgx->register_op(c, &TGX_OP(.schema = "kept::alive(Tensor x) -> int", .kernel = count)) ? -1 : 0;
}
TGX_EXTENSION("kept", "1", init)
"""


@pytest.mark.parametrize("size", [8, 128])
def test_a_state_goes_with_its_node(size):
    """8 bytes lie in the node, 128 do not."""
    cpp_extension.load_inline("kept", c_sources=SOURCE.replace("BYTES", str(size)))
    twice, x = tg.ops.kept.twice, tg.ones(3, requires_grad=True)

    def alive():
        return tg.ops.kept.alive(tg.ones(1))

    outs = [twice(x) for _ in range(20)]
    assert alive() == 20
    del outs[10:]  # never asked for a gradient
    assert alive() == 10
    for _ in range(2):
        assert tg.autograd.grad(outs, x, [tg.ones(3)] * 10, retain_graph=True)[0].tolist() == [20.0] * 3
    del outs
    assert alive() == 0
    out = twice(x)
    out.grad_fn.metadata["out"] = out  # a circle
    del out
    assert alive() == 1
    collect()
    assert alive() == 0
    with pytest.raises(KeyError, match="mine"):
        _drop(twice(x))
    assert alive() == 0


def _drop(out):
    """An error is on its way when the node goes."""
    try:
        raise KeyError("mine")
    finally:
        del out
