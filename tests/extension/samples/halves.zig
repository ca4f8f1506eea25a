// An op in Zig over the table, x / 2: a pair of functions, what comes out and how it is filled. `zig translate-c tgx.h` makes
// tgx.zig of the header.
const c = @import("tgx.zig");

const FLOAT32: c.tgx_dtype = 2 | 32 << 8 | 1 << 16;
const FLOAT64: c.tgx_dtype = 2 | 64 << 8 | 1 << 16;

var table: *const c.tgx_api = undefined;

fn fill(comptime T: type, x: c.tgx_view, y: c.tgx_view) void {
    const n: usize = @intCast(c.tgx_count(&x));
    const from: [*]const T = @ptrCast(@alignCast(x.data orelse return));
    const to: [*]T = @ptrCast(@alignCast(y.data orelse return));
    for (0..n) |i| to[i] = from[i] / 2;
}

fn half(ctx: ?*c.tgx_ctx, _: ?*anyopaque, in: [*c]const c.tgx_value, _: i32, out: [*c]c.tgx_value, _: i32) callconv(.c) c_int {
    var x: c.tgx_view = undefined;
    var y: c.tgx_view = undefined;
    if (table.view.?(ctx, in[0].u.t, &x) != 0 or table.view_mut.?(ctx, out[0].u.t, &y) != 0) return -1;
    if (x.dtype == FLOAT64) fill(f64, x, y) else fill(f32, x, y);
    return 0;
}

fn like(ctx: ?*c.tgx_ctx, _: ?*anyopaque, in: [*c]const c.tgx_value, _: i32, out: [*c]c.tgx_geometry, _: i32) callconv(.c) c_int {
    var x: c.tgx_view = undefined;
    if (table.geometry.?(ctx, in[0].u.t, &x) != 0) return -1;
    if (x.dtype != FLOAT64 and x.dtype != FLOAT32)
        return table.fail_text.?(ctx, "TypeError", "x must be float32 or float64");
    out[0].ndim = x.ndim;
    out[0].dtype = x.dtype;
    for (0..@intCast(x.ndim)) |i| out[0].sizes[i] = x.shape[i];
    return 0;
}

fn init(ctx: ?*c.tgx_ctx, api: [*c]const c.tgx_api) callconv(.c) c_int {
    table = api;
    var d = @import("std").mem.zeroes(c.tgx_op_def);
    d.size = @sizeOf(c.tgx_op_def);
    d.schema = "halves::half(Tensor x) -> Tensor";
    d.kernel = half;
    d.shape = like;
    d.flags = c.TGX_FILLS | c.TGX_DENSE;
    return table.register_op.?(ctx, &d);
}

export const tgx_extension_v1 = c.tgx_extension{
    .size = @sizeOf(c.tgx_extension),
    .major = 1,
    .minor = 0,
    .needs = c.TGX_HAS_OPS,
    .name = "halves",
    .version = "1.0",
    .init = init,
};
