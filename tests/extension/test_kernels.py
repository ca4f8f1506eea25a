"""Kernels that do wrong are contained where that is possible, and told in words."""

import pytest

import tinygrad_ext as tg

from .conftest import KERNEL


def op(inline, body, schema="(Tensor x) -> Tensor", more=""):
    inline(KERNEL.format(body=body, schema=schema, more=more and f", {more}"))
    return tg.ops.probe.op


@pytest.mark.parametrize(
    "body, schema, error, words",
    [
        ("return -1;", "(Tensor x) -> Tensor", RuntimeError, "failed with code -1 and did not say why"),
        ('return tgx->fail(c, "ValueError", "x is %d", 3);', "(Tensor x) -> Tensor", ValueError, "^probe::op: x is 3$"),
        ('return tgx->fail(c, "NoSuch", "%s", "a");', "(Tensor x) -> Tensor", RuntimeError, "NoSuch: a"),
        ("return tgx->fail(c, 0, 0);", "(Tensor x) -> Tensor", RuntimeError, "probe::op"),
        ("", "(Tensor x) -> Tensor", RuntimeError, "must be Tensor, but it is None"),
        ("out[0] = tgx_of_int(3);", "(Tensor x) -> Tensor", RuntimeError, "must be Tensor, but it is a int"),
        ("out[0] = tgx_of_tensor(0);", "(Tensor x) -> Tensor", TypeError, "result of the kernel: expected a tensor"),
        ("out[0] = in[0];", "(Tensor x) -> Tensor", RuntimeError, "memory with argument 'x'"),
        ("out[0].tag = 999;", "(Tensor x) -> Tensor", TypeError, "no value of kind 999"),
        ("out[0] = tgx_of_int(1);", "(Tensor x) -> ()", RuntimeError, "wrote to a result number 0"),
        ("out[0] = out[1] = tgx_of_tensor(tgx->empty_like(c, in[0].u.t, 0));",
         "(Tensor x) -> (Tensor, Tensor)", RuntimeError,
         "one tensor as result 0 and as result 1"),
        ("out[0] = out[1] = tgx_of_tensor(tgx->empty_like(c, in[0].u.t, 0));", "(Tensor x) -> Tensor", RuntimeError,
         "wrote to a result number 1; the schema has 1"),
        ("out[0].tag = TGX_STRING;", "(Tensor x) -> str", TypeError, "a text is at NULL"),
        ("out[0].tag = TGX_INTS; out[0].count = 4;", "(Tensor x) -> int[]", TypeError, "a list of 4 values is at NULL"),
        ("out[0] = tgx_of_tensor(tgx->empty(c, 77, 0, 0, 0)); return -1;",
         "(Tensor x) -> Tensor", TypeError, "code 77"),
        ("int64_t s = -4; return tgx->empty(c, TGX_INT8, 1, &s, 0) ? 0 : -1;",
         "(Tensor x) -> Tensor", RuntimeError, "empty"),
        ("return tgx->empty(c, TGX_INT8, 99, 0, 0) ? 0 : -1;", "(Tensor x) -> Tensor", RuntimeError, "from 0 to 64"),
        ("tgx_view v; return tgx->view(c, 0, &v);", "(Tensor x) -> Tensor", RuntimeError, "view of NULL"),
        ("int64_t s[1] = {99}, t[1] = {1}; return tgx->strided(c, in[0].u.t, 1, s, t, 0) ? 0 : -1;",
         "(Tensor x) -> Tensor",
         RuntimeError, "strided"),
        ("int64_t s[1] = {1}, t[1] = {1}; return tgx->strided(c, in[0].u.t, 1, s, t, -1) ? 0 : -1;",
         "(Tensor x) -> Tensor",
         RuntimeError, "offset -1"),
        ("return tgx->call(c, 0, in, 1, out, 1);", "(Tensor x) -> Tensor", TypeError, "none that resolve gave"),
        ('return tgx->resolve(c, "aten::nothing") ? 0 : -1;',
         "(Tensor x) -> Tensor", LookupError, "no op 'aten::nothing'"),
        ('return tgx->resolve(c, "aten::add") ? 0 : -1;',
         "(Tensor x) -> Tensor", LookupError, "overloads are aten::add"),
        ('tgx_op *o = tgx->resolve(c, "aten::exp"); return tgx->call(c, o, in, 1, out, 2);',
         "(Tensor x) -> Tensor", TypeError,
         "room for 2 results"),
        ("return tgx->register_op(c, &TGX_OP(.schema = 0));", "(Tensor x) -> Tensor", RuntimeError, "while init runs"),
        ("tgx->save(c, 0, 0, in[0].u.t); return -1;", "(Tensor x) -> Tensor", TypeError, "expected a node"),
        ("tgx->memory(c, (size_t)1 << 60); return -1;", "(Tensor x) -> Tensor", MemoryError, "no memory for"),
    ],
)  # fmt: skip
def test_a_kernel_that_does_wrong_is_contained(inline, body, schema, error, words):
    f = op(inline, body, schema)
    for _ in range(10):  # watched, and not
        with pytest.raises(error, match=words):
            f(tg.ones(3))


def test_a_pending_error_that_the_kernel_took_no_notice_of_is_over(inline):
    f = op(inline, "tgx->empty(c, 77, 0, 0, 0); out[0] = tgx_of_int(5);", "() -> int")
    assert [f() for _ in range(3)] == [5, 5, 5]


def test_what_an_op_that_is_called_raised_is_the_cause(inline):
    body = """
    tgx_value two[2] = {in[0], in[1]}, r;
    if (tgx->call(c, tgx->resolve(c, "aten::mm"), two, 2, &r, 1)) return tgx->fail(c, "ValueError", "cannot go on");
    out[0] = r;
    """
    f = op(inline, body, "(Tensor a, Tensor b) -> Tensor")
    assert f(tg.ones(2, 3), tg.ones(3, 2)).tolist() == [[3, 3], [3, 3]]
    with pytest.raises(ValueError, match="probe::op: cannot go on") as caught:
        f(tg.ones(2, 3), tg.ones(2, 3))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_result_that_its_shape_does_not_foretell_is_told(inline):
    text = KERNEL.format(
        body="out[0] = tgx_of_tensor(tgx->empty_like(c, in[0].u.t, TGX_FLOAT64));",
        schema="(Tensor x) -> Tensor",
        more=", .shape = shape",
    )
    shape = """
    static int shape(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_geometry *out, int32_t m) {
        out[0].ndim = 1, out[0].dtype = TGX_FLOAT32, out[0].sizes[0] = 3;
        return 0;
    }
    """
    inline(shape + text)
    with pytest.raises(RuntimeError, match=r"result 0 of the kernel is torch.float64 .*says torch.float32"):
        tg.ops.probe.op(tg.ones(3))


def test_an_undeclared_write_is_told(inline):
    f = op(inline, "tgx_view v; tgx->view_mut(c, in[0].u.t, &v); *(float *)v.data = 9;", "(Tensor x) -> ()")
    with pytest.raises(RuntimeError, match="wrote to argument 'x'"):
        f(tg.ones(3))


@pytest.mark.parametrize(
    "bad",
    [
        "out[0] = in[0];",
        "out[0] = tgx_of_tensor(tgx->retain(in[0].u.t));",
        "out[0] = tgx_of_tensor(tgx->strided(c, in[0].u.t, 1, &two, &one, 0));",
    ],
)
@pytest.mark.parametrize("grad", [False, True])
def test_an_argument_s_memory_is_no_result_of_later_calls_either(inline, bad, grad):
    """The first calls are watched; this is about those that are not, whose new results are taken as they are."""
    body = f"""
    const int64_t two = 2, one = 1;
    tgx_view v;
    if (tgx->view(c, in[0].u.t, &v)) return -1;
    (void)two, (void)one;
    if (((float *)v.data)[0] > 0) {{ {bad} }}
    else out[0] = tgx_of_tensor(tgx->empty_like(c, in[0].u.t, 0));
    """
    f = op(inline, body)
    for _ in range(20):
        assert f(tg.zeros(4, requires_grad=grad)).shape == (4,)
    kept = tg.ones(4, requires_grad=grad)
    for _ in range(3):
        for x in (kept, None):
            with pytest.raises(RuntimeError, match="must not also be an input|memory with argument 'x'"):
                f(tg.ones(4, requires_grad=grad) if x is None else x)
    assert kept.tolist() == [1, 1, 1, 1]


def test_memory_of_the_extension_is_given_back(inline):
    text = """
    #include <stdlib.h>
    static int alive;
    static void gone(void *p) { alive--; free(p); }
    static int make(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
        int64_t sizes[2] = {2, 3};
        float *p = aligned_alloc(64, 64);
        tgx_view v = {p, TGX_CPU, 0, 2, TGX_FLOAT32, sizes, 0, 0};
        for (int i = 0; i < 6; i++) p[i] = i;
        alive++;
        out[0].tag = TGX_TENSOR;
        return (out[0].u.t = tgx->wrap(c, &v, gone, p)) ? 0 : -1;
    }
    static int count(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
        out[0] = tgx_of_int(alive);
        return 0;
    }
    static int init(tgx_ctx *c) {
        return tgx->register_op(c, &TGX_OP(.schema = "probe::make() -> Tensor", .kernel = make))
            || tgx->register_op(c, &TGX_OP(.schema = "probe::count() -> int", .kernel = count));
    }
    TGX_EXTENSION("probe", "1", init)
    """
    inline(text)
    t = tg.ops.probe.make()
    row = t[1]
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]] and tg.ops.probe.count() == 1
    del t
    assert row.tolist() == [3, 4, 5] and tg.ops.probe.count() == 1
    del row
    assert tg.ops.probe.count() == 0


BACKWARD = """
static int backward(tgx_ctx *c, tgx_node *node, void *state, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                    int32_t m) {{
    {body}
    return 0;
}}
static int setup(tgx_ctx *c, void *self, tgx_node *node, void *state, const tgx_value *in, int32_t n,
                 const tgx_value *out, int32_t m) {{
    {setup}
    return 0;
}}
"""


@pytest.mark.parametrize(
    "setup, body, error, words",
    [
        ("", 'return tgx->fail(c, "ValueError", "no gradient");', ValueError, "probe::op: no gradient"),
        ("", "return -3;", RuntimeError, "the backward failed with code -3"),
        ("", "tgx->unpack(c, node, 5); return -1;", IndexError, "saved tensor 5: the definition has saved=1 places"),
        ("", "return tgx->needs(c, node, 7);", IndexError, "edge 7: there are 1"),
        ("", "int64_t s[1] = {5}; inputs[0] = tgx->empty(c, TGX_FLOAT32, 1, s, 0);", RuntimeError, "invalid gradient"),
        ("tgx->save(c, node, 9, in[0].u.t); return -1;", "", IndexError, "saved tensor 9"),
        (
            "tgx->save(c, node, 0, in[0].u.t); return tgx->save(c, node, 0, in[0].u.t);",
            "",
            RuntimeError,
            "place 0 already",
        ),
        ("return -2;", "", RuntimeError, "the setup failed with code -2"),
    ],
)
def test_a_derivative_that_does_wrong_is_told(inline, setup, body, error, words):
    kernel = KERNEL.format(
        body="out[0] = tgx_of_tensor(tgx->empty_like(c, in[0].u.t, 0));",
        schema="(Tensor x) -> Tensor",
        more=", .setup = setup, .backward = backward, .saved = 1",
    )
    inline(BACKWARD.format(setup=setup, body=body) + kernel)
    x = tg.ones(3, requires_grad=True)
    for _ in range(3):
        with pytest.raises(error, match=words):
            tg.ops.probe.op(x).sum().backward()


def test_a_gradient_that_is_passed_on_is_not_retained(inline):
    kernel = KERNEL.format(
        body="out[0] = tgx_of_tensor(tgx->empty_like(c, in[0].u.t, 0));",
        schema="(Tensor x, Tensor y) -> Tensor",
        more=", .backward = backward",
    )
    inline(BACKWARD.format(setup="", body="inputs[0] = inputs[1] = grads[0];") + kernel)
    x, y = tg.ones(3, requires_grad=True), tg.ones(3, requires_grad=True)
    for _ in range(50):
        tg.ops.probe.op(x, y).backward(tg.full((3,), 2.0))
    assert x.grad.tolist() == [100] * 3 and y.grad.tolist() == [100] * 3
