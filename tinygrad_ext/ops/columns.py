"""Windows of images as columns, and columns added back as windows."""

import tinygrad_ext as tg
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros
from tinygrad_ext.ops.transposed import cropped, each


def _counts(name, size, kernel, dilation, padding, stride):
    """How many windows there are along each dimension."""
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel, dilation, padding, stride)]
    if min(counts) <= 0:
        raise RuntimeError(
            f"{name}: Given spatial size {list(size)}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
            f"stride={stride}, calculated shape of the array of sliding blocks as {counts}, but its "
            f"components must be at "
            "least one."
        )
    return counts


def _pairs(name, kernel_size, dilation, padding, stride):
    values = (("kernel_size", kernel_size), ("dilation", dilation), ("padding", padding), ("stride", stride))
    kernel, dilation, padding, stride = [each(v, 2, name, argument) for argument, v in values]
    if min(*kernel, *dilation, *stride) <= 0 or min(padding) < 0:
        raise RuntimeError(
            f"{name}: kernel size, dilation and stride should be greater than zero and padding not negative, but got "
            f"kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}"
        )
    return kernel, dilation, padding, stride


def _unfold(input, kernel_size, dilation, padding, stride):
    kernel, dilation, padding, stride = _pairs("unfold", kernel_size, dilation, padding, stride)
    if input.dim() not in (3, 4):
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size for input, but got: {list(input.shape)}"
        )
    x = input if input.dim() == 4 else input.unsqueeze(0)
    counts = _counts("unfold", x.shape[2:], kernel, dilation, padding, stride)
    x = tg.constant_pad_nd(x, (padding[1], padding[1], padding[0], padding[0])) if any(padding) else x
    for at, (k, d, s) in enumerate(zip(kernel, dilation, stride)):
        x = x.unfold(2 + at, d * (k - 1) + 1, s)[..., ::d]
    y = x.permute(0, 1, 4, 5, 2, 3).reshape(x.shape[0], x.shape[1] * kernel[0] * kernel[1], counts[0] * counts[1])
    return y if input.dim() == 4 else y.squeeze(0)


def _fold(input, output_size, kernel_size, dilation, padding, stride):
    kernel, dilation, padding, stride = _pairs("fold", kernel_size, dilation, padding, stride)
    size = each(output_size, 2, "fold", "output_size")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"fold: Expected 2D or 3D (batch mode) tensor for input, but got: {list(input.shape)}")
    x = input if input.dim() == 3 else input.unsqueeze(0)
    counts = _counts("fold", size, kernel, dilation, padding, stride)
    area, blocks = kernel[0] * kernel[1], counts[0] * counts[1]
    if x.shape[1] % area:
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)="
            f"{x.shape[1]} and kernel_size={kernel}"
        )
    if x.shape[2] != blocks:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}, "
            f"expected size of input's dimension 2 to match the calculated number of sliding blocks {counts[0]} * "
            f"{counts[1]} = {blocks}, but got input.size(2)={x.shape[2]}."
        )
    n, channels = x.shape[0], x.shape[1] // area
    height, width = size[0] + 2 * padding[0], size[1] + 2 * padding[1]
    rows, columns = [
        tg.arange(k, device=x.device).unsqueeze(1) * d + tg.arange(c, device=x.device) * s
        for k, d, c, s in zip(kernel, dilation, counts, stride)
    ]
    at = rows[:, None, :, None] * width + columns[None, :, None, :]
    y = x.new_zeros(n, channels, height * width).index_add(2, at.reshape(-1), x.reshape(n, channels, area * blocks))
    y = cropped(y.reshape(n, channels, height, width), padding, [0, 0])
    return y if input.dim() == 3 else y.squeeze(0)


op(
    "aten::unfold.image(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] "
    "stride=1) -> Tensor",
    compose=_unfold,
    types="float",
    variants="function",
    where="nn.functional",
    samples=lambda make: [
        Sample(make(2, 2, 4, 5), 2),
        Sample(make(2, 5, 4), (2, 3), padding=1, stride=2),
        Sample(make(1, 1, 5, 5), 2, 2, (1, 0), 1),
    ],
    errors=[
        (lambda: _unfold(zeros(2), 2, 1, 0, 1), RuntimeError, "Expected 3D or 4D"),
        (lambda: _unfold(zeros(1, 2, 2), 3, 1, 0, 1), RuntimeError, "components must be at least one"),
    ],
    doc="Windows of images (N, C, H, W) as columns (N, C * kH * kW, windows).",
)

op(
    "aten::fold(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, "
    "int[2] stride=1)"
    " -> Tensor",
    compose=_fold,
    types="float",
    variants="function",
    where="nn.functional",
    samples=lambda make: [
        Sample(make(2, 8, 12), (4, 5), 2),
        Sample(make(6, 6), (3, 5), (2, 3), padding=(0, 1), stride=(1, 2)),
        Sample(make(1, 4, 9), 5, 2, 2),
    ],
    errors=[
        (lambda: _fold(zeros(1, 3, 4), 3, 2, 1, 0, 1), RuntimeError, "divisible by the product of kernel_size"),
        (lambda: _fold(zeros(1, 4, 5), 3, 2, 1, 0, 1), RuntimeError, "number of sliding blocks 2 * 2 = 4"),
    ],
    doc="The sum of columns that are windows, back in images of output_size: the transpose of unfold.",
)
