"""The convolutions of known networks: ResNet-18, 34 and 50, MobileNet 1 and 2, LeNet, AlexNet and VGG, audio, dilated,
grouped and transposed ones. `SHAPES` is data; benchmarks/wide.py times each with batch 1 and 8, forward and backward.
"""

from collections import namedtuple

# input: its channels and sizes; transposed: a conv_transpose
Shape = namedtuple("Shape", "net input out kernel stride padding dilation groups transposed")
SHAPES = []


def conv(net, channels, size, out, kernel, stride=1, padding=None, dilation=1, groups=1, transposed=False, dims=2):
    """Add one layer; a padding that keeps the size is the default."""
    padding = dilation * (kernel - 1) // 2 if padding is None else padding
    shape = Shape(net, (channels, *[size] * dims), out, kernel, stride, padding, dilation, groups, transposed)
    if not any(shape[1:] == known[1:] for known in SHAPES):  # networks share layers
        SHAPES.append(shape)


def title(shape):
    """Such as 'ResNet-18 64x56x56 to 64, 3, stride 2'."""
    words = [f"{shape.net} {'x'.join(map(str, shape.input))} to {shape.out}, {shape.kernel}"]
    words += [f"stride {shape.stride}"] * (shape.stride > 1) + [f"padding {shape.padding}"] * (shape.padding > 0)
    words += [f"dilation {shape.dilation}"] * (shape.dilation > 1) + [f"groups {shape.groups}"] * (shape.groups > 1)
    return ", ".join(words + ["transposed"] * shape.transposed)


# ---- ResNet: 18 and 34 have the same layers, 34 more of each --------------------------------------------------------

conv("ResNet-18", 3, 224, 64, 7, stride=2)
for width, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
    conv("ResNet-18", width, size, width, 3)
for width, size in ((64, 56), (128, 28), (256, 14)):
    conv("ResNet-18", width, size, 2 * width, 3, stride=2)
    conv("ResNet-18", width, size, 2 * width, 1, stride=2)
conv("ResNet-34 head, 112", 3, 112, 64, 7, stride=2)
for width, size in ((64, 28), (128, 14), (256, 7)):  # images of 112
    conv("ResNet-34 of 112", width, size, width, 3)
    conv("ResNet-34 of 112", width, size, 2 * width, 3, stride=2)

conv("ResNet-50", 64, 56, 64, 1)
for width, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
    conv("ResNet-50", width, size, 4 * width, 1)
    conv("ResNet-50", 4 * width, size, width, 1)
    if width < 512:
        conv("ResNet-50", 4 * width, size, 2 * width, 1)
        conv("ResNet-50", 2 * width, size, 2 * width, 3, stride=2)
        conv("ResNet-50", 4 * width, size, 8 * width, 1, stride=2)

# ---- MobileNet: one filter a channel, then 1x1 -----------------------------------------------------------------------

conv("MobileNet 1", 3, 224, 32, 3, stride=2)
for width, size, out, stride in (
    (32, 112, 64, 1),
    (64, 112, 128, 2),
    (128, 56, 128, 1),
    (128, 56, 256, 2),
    (256, 28, 256, 1),
    (256, 28, 512, 2),
    (512, 14, 512, 1),
    (512, 14, 1024, 2),
    (1024, 7, 1024, 1),
):
    conv("MobileNet 1", width, size, width, 3, stride=stride, groups=width)
    conv("MobileNet 1", width, size // stride, out, 1)
for width, size, out, stride in (
    (16, 112, 24, 2),
    (24, 56, 32, 2),
    (32, 28, 64, 2),
    (64, 14, 96, 1),
    (96, 14, 160, 2),
    (160, 7, 320, 1),
):
    conv("MobileNet 2", width, size, 6 * width, 1)
    conv("MobileNet 2", 6 * width, size, 6 * width, 3, stride=stride, groups=6 * width)
    conv("MobileNet 2", 6 * width, size // stride, out, 1)
conv("MobileNet 2", 320, 7, 1280, 1)

# ---- LeNet, AlexNet, VGG, small images -------------------------------------------------------------------------------

conv("LeNet", 1, 28, 6, 5, padding=2)
conv("LeNet", 6, 14, 16, 5, padding=0)
conv("LeNet", 1, 28, 32, 3, padding=0)
conv("LeNet", 32, 26, 64, 3, padding=0)
conv("AlexNet", 3, 224, 64, 11, stride=4, padding=2)
conv("AlexNet", 64, 27, 192, 5)
conv("AlexNet", 192, 13, 384, 3)
conv("AlexNet", 384, 13, 256, 3)
for width, size, out in ((3, 64, 64), (64, 64, 64), (64, 32, 128), (128, 32, 128), (256, 16, 256), (512, 8, 512)):
    conv("VGG of 64", width, size, out, 3)
for width in (16, 32, 64):
    conv("ResNet-20 of CIFAR", width, 512 // width, width, 3)

# ---- audio: one dimension --------------------------------------------------------------------------------------------

conv("wav2vec", 1, 16000, 512, 10, stride=5, padding=0, dims=1)
conv("wav2vec", 512, 799, 512, 3, stride=2, padding=0, dims=1)
conv("wav2vec", 512, 199, 512, 2, stride=2, padding=0, dims=1)
conv("wav2vec positions", 768, 50, 768, 128, padding=64, groups=16, dims=1)
conv("Whisper", 80, 3000, 384, 3, dims=1)
conv("Whisper", 384, 3000, 384, 3, stride=2, dims=1)
conv("M5", 1, 8000, 64, 80, stride=4, padding=0, dims=1)
conv("M5", 64, 495, 64, 3, padding=0, dims=1)
conv("TCN", 64, 400, 64, 3, dims=1)
conv("Conformer", 144, 200, 144, 31, groups=144, dims=1)
conv("Conformer", 144, 200, 288, 1, dims=1)
for dilation in (1, 2, 8, 64, 512):
    conv("WaveNet", 32, 4000, 64, 2, padding=dilation, dilation=dilation, dims=1)

# ---- dilated, grouped, transposed ------------------------------------------------------------------------------------

for dilation in (6, 12, 18):
    conv("DeepLab", 512, 33, 64, 3, dilation=dilation)
conv("DeepLab", 256, 33, 256, 3, dilation=2)
conv("DeepLab", 512, 33, 512, 3, dilation=4, groups=512)
for dilation in (2, 4, 16):
    conv("context", 32, 64, 32, 3, dilation=dilation)
for width, size in ((128, 56), (256, 28), (512, 14), (1024, 7)):
    conv("ResNeXt", width, size, width, 3, groups=32)
for width, size in ((240, 28), (480, 14), (960, 7)):
    conv("ShuffleNet", width, size, width, 1, groups=3)
conv("two groups", 96, 27, 256, 5, groups=2)
conv("ConvNeXt", 96, 56, 96, 7, groups=96)
conv("ConvNeXt", 384, 14, 384, 7, groups=384)
conv("patches", 3, 224, 192, 16, stride=16, padding=0)
for width, size in ((1024, 4), (512, 8), (256, 16), (128, 32)):
    conv("DCGAN", width, size, width // 2, 4, stride=2, padding=1, transposed=True)
conv("DCGAN", 100, 1, 512, 4, padding=0, transposed=True)
conv("DCGAN", 64, 32, 3, 4, stride=2, padding=1, transposed=True)
for width, size in ((256, 14), (128, 28), (64, 56)):
    conv("U-Net", width, size, width // 2, 2, stride=2, padding=0, transposed=True)
conv("transposed", 32, 28, 32, 3, padding=1, transposed=True)
conv("transposed", 64, 14, 64, 3, stride=2, padding=1, groups=64, transposed=True)
conv("HiFi-GAN", 256, 64, 128, 16, stride=8, padding=4, transposed=True, dims=1)
conv("HiFi-GAN", 128, 512, 64, 4, stride=2, padding=1, transposed=True, dims=1)
conv("video", 3, 16, 16, 3, dims=3)
conv("video", 16, 16, 32, 3, stride=2, dims=3)
