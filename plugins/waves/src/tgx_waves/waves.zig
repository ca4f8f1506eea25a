// A triangular wave and its slope, in Zig over the table: pairs of functions, one that says what comes out and one that fills it.
// `zig translate-c tgx.h` makes tgx.zig of the header. The derivative of `triangle` is `triangle_slope`, which is linear in what
// it is given and so its own derivative.
const std = @import("std");
const c = @import("tgx.zig");

const FLOAT32: c.tgx_dtype = 2 | 32 << 8 | 1 << 16; // macros with arguments are not translated
const FLOAT64: c.tgx_dtype = 2 | 64 << 8 | 1 << 16;

var table: *const c.tgx_api = undefined;
var slope: ?*c.tgx_op = null;

// Where x is in its period, from -1/2 to 1/2.
fn phase(comptime T: type, x: T, period: T) T {
    const turns = x / period;
    return turns - @floor(turns + 0.5);
}

fn elements(comptime T: type, v: c.tgx_view) [*]T {
    return @ptrCast(@alignCast(v.data.?));
}

fn wave(comptime T: type, x: c.tgx_view, y: c.tgx_view, period: f64) void {
    const from = elements(T, x);
    const to = elements(T, y);
    for (0..@intCast(c.tgx_count(&x))) |i| to[i] = 4 * @abs(phase(T, from[i], @floatCast(period))) - 1;
}

fn sloped(comptime T: type, grad: c.tgx_view, x: c.tgx_view, y: c.tgx_view, period: f64) void {
    const p: T = @floatCast(period);
    const g = elements(T, grad);
    const from = elements(T, x);
    const to = elements(T, y);
    for (0..@intCast(c.tgx_count(&x))) |i| {
        const at = phase(T, from[i], p);
        const steep: T = if (at > 0) 4 else if (at < 0) -4 else at; // a NaN stays one
        to[i] = steep / p * g[i];
    }
}

fn triangle(ctx: ?*c.tgx_ctx, _: ?*anyopaque, in: [*c]const c.tgx_value, _: i32, out: [*c]c.tgx_value, _: i32) callconv(.c) c_int {
    var x: c.tgx_view = undefined;
    var y: c.tgx_view = undefined;
    if (table.view.?(ctx, in[0].u.t, &x) != 0 or table.view_mut.?(ctx, out[0].u.t, &y) != 0) return -1;
    if (c.tgx_count(&x) == 0) return 0;
    if (x.dtype == FLOAT64) wave(f64, x, y, in[1].u.f) else wave(f32, x, y, in[1].u.f);
    return 0;
}

fn triangleSlope(ctx: ?*c.tgx_ctx, _: ?*anyopaque, in: [*c]const c.tgx_value, _: i32, out: [*c]c.tgx_value, _: i32) callconv(.c) c_int {
    var g: c.tgx_view = undefined;
    var x: c.tgx_view = undefined;
    var y: c.tgx_view = undefined;
    if (table.view.?(ctx, in[0].u.t, &g) != 0 or table.view.?(ctx, in[1].u.t, &x) != 0) return -1;
    if (table.view_mut.?(ctx, out[0].u.t, &y) != 0) return -1;
    if (c.tgx_count(&x) == 0) return 0;
    if (x.dtype == FLOAT64) sloped(f64, g, x, y, in[2].u.f) else sloped(f32, g, x, y, in[2].u.f);
    return 0;
}

// As the first tensor; the last argument is the period, and tensors before it are alike.
fn like(ctx: ?*c.tgx_ctx, _: ?*anyopaque, in: [*c]const c.tgx_value, n: i32, out: [*c]c.tgx_geometry, _: i32) callconv(.c) c_int {
    var first: c.tgx_view = undefined;
    if (table.geometry.?(ctx, in[0].u.t, &first) != 0) return -1;
    if (first.dtype != FLOAT64 and first.dtype != FLOAT32)
        return table.fail_text.?(ctx, "NotImplementedError", "tensors must be float32 or float64; convert them with .float()");
    const last: usize = @intCast(n - 1);
    if (!(in[last].u.f > 0) or std.math.isInf(in[last].u.f))
        return table.fail_text.?(ctx, "ValueError", "period must be a positive number");
    const rank: usize = @intCast(first.ndim);
    for (1..last) |k| {
        var v: c.tgx_view = undefined;
        if (table.geometry.?(ctx, in[k].u.t, &v) != 0) return -1;
        if (v.dtype != first.dtype or v.ndim != first.ndim or !std.mem.eql(i64, v.shape[0..rank], first.shape[0..rank]))
            return table.fail_text.?(ctx, "RuntimeError", "tensors must be of one dtype and shape");
    }
    out[0].ndim = first.ndim;
    out[0].dtype = first.dtype;
    @memcpy(out[0].sizes[0..rank], first.shape[0..rank]);
    return 0;
}

// Backward of both: the last tensor is kept, and what arrives goes through the slope there.
fn keep(ctx: ?*c.tgx_ctx, _: ?*anyopaque, node: ?*c.tgx_node, state: ?*anyopaque, in: [*c]const c.tgx_value, n: i32, _: [*c]const c.tgx_value, _: i32) callconv(.c) c_int {
    const last: usize = @intCast(n - 1);
    @as(*f64, @ptrCast(@alignCast(state.?))).* = in[last].u.f;
    return table.save.?(ctx, node, 0, in[last - 1].u.t);
}

fn back(ctx: ?*c.tgx_ctx, node: ?*c.tgx_node, state: ?*anyopaque, grads: [*c]const ?*c.tgx_tensor, _: i32, inputs: [*c]?*c.tgx_tensor, _: i32) callconv(.c) c_int {
    const x = table.unpack.?(ctx, node, 0) orelse return -1;
    defer table.release.?(x);
    const period = @as(*f64, @ptrCast(@alignCast(state.?))).*;
    const args = [_]c.tgx_value{ c.tgx_of_tensor(grads[0]), c.tgx_of_tensor(x), c.tgx_of_float(period) };
    var made = std.mem.zeroes(c.tgx_value);
    if (table.call.?(ctx, slope, &args, 3, &made, 1) != 0) return -1;
    inputs[0] = made.u.t;
    return 0;
}

fn init(ctx: ?*c.tgx_ctx, api: [*c]const c.tgx_api) callconv(.c) c_int {
    table = api;
    var d = std.mem.zeroes(c.tgx_op_def);
    d.size = @sizeOf(c.tgx_op_def);
    d.shape = like;
    d.setup = keep;
    d.backward = back;
    d.saved = 1;
    d.state_size = @sizeOf(f64);
    d.flags = c.TGX_FILLS | c.TGX_DENSE | c.TGX_DIFFERENTIABLE;
    d.schema = "waves::triangle(Tensor x, float period=1.0) -> Tensor";
    d.kernel = triangle;
    if (table.register_op.?(ctx, &d) != 0) return -1;
    d.schema = "waves::triangle_slope(Tensor grad, Tensor x, float period=1.0) -> Tensor";
    d.kernel = triangleSlope;
    d.edges = "grad";
    if (table.register_op.?(ctx, &d) != 0) return -1;
    slope = table.resolve.?(ctx, "waves::triangle_slope") orelse return -1;
    return 0;
}

export const tgx_extension_v1 = c.tgx_extension{
    .size = @sizeOf(c.tgx_extension),
    .major = 1,
    .minor = 0,
    .needs = c.TGX_HAS_OPS,
    .name = "waves",
    .version = "0.1.0",
    .init = init,
};
