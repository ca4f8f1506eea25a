"""Times roi_align, forward and backward, beside a plain C loop of the same algorithm; at most 1.5 times is the aim.

    python plugins/vision/benchmarks/against_c.py

Compiles plain.c with gcc. Both are called with finished float32 arrays, in turn, on one thread; the quickest call is
counted.
"""

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import tinygrad_ext as tg
from tinygrad_ext import ops

HERE = Path(__file__).parent
# batch, channels, height and width; regions; bins; sampling_ratio
CASES = {
    "a detector's head": ((2, 64, 50, 68), 100, 7, 2),
    "a sample a pixel": ((2, 16, 50, 68), 100, 7, 0),
    "a small image": ((8, 1, 8, 8), 8, 4, 2),
}


def compiled():
    """plain.c as a library, with the flags of setup.py."""
    folder = tempfile.mkdtemp()
    path = Path(folder) / "plain.so"
    flags = ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno", "-fPIC", "-shared"]
    subprocess.run(["gcc", *flags, str(HERE / "plain.c"), "-o", str(path), "-lm"], check=True)
    return ctypes.CDLL(str(path))


def pointer(t):
    return ctypes.c_void_p(t.data_ptr())


def quickest(one, two, seconds=1.0):
    """Shortest times of two functions that are called in turn: what another program takes away is not counted."""
    times, end = ([], []), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for fn, found in zip((one, two), times):
            start = time.perf_counter()
            fn()
            found.append(time.perf_counter() - start)
    return [min(t) for t in times]


def calls(library, shape, regions, bins, sampling):
    """{"forward": (ours, plain C), "backward": ...}, functions to be timed; they are compared first."""
    batch, channels, height, width = shape
    tg.manual_seed(0)
    image = tg.rand(shape)
    corners = tg.rand(regions, 2) * tg.tensor([width / 2, height / 2])
    sides = tg.rand(regions, 2) * tg.tensor([width / 2, height / 2]) + 1
    rois = tg.cat([tg.arange(regions)[:, None] % batch, corners, corners + sides], 1)
    sizes = [ctypes.c_int(n) for n in (sampling, channels, height, width, bins, bins, bins * (sampling or max(shape)))]
    out, grad, back = tg.empty(regions, channels, bins, bins), tg.rand(regions, channels, bins, bins), tg.zeros(shape)
    more = (pointer(rois), pointer(out), ctypes.c_int(regions), ctypes.c_float(1.0), *sizes)
    kept = (rois, out, grad)  # `plain` has their addresses alone
    forward = lambda: ops.vision.roi_align(image, rois, 1.0, bins, bins, sampling)
    plain = lambda kept=kept, more=more: library.roi_align(pointer(image), *more)
    plain()
    assert tg.allclose(forward(), out, atol=1e-5), "the C loop computes something else"
    backward = lambda: ops.vision.roi_align_backward(grad, rois, 1.0, bins, bins, sampling, *shape)
    more_back = (pointer(rois), pointer(grad), *more[2:])

    def plain_backward(kept=kept):
        back.zero_()
        library.roi_align_backward(pointer(back), *more_back)

    plain_backward()
    assert tg.allclose(backward(), back, atol=1e-4), "the C loop computes another gradient"
    return {"forward": (forward, plain), "backward": (backward, plain_backward)}


def main():
    library = compiled()
    for name, sizes in CASES.items():
        for direction, pair in calls(library, *sizes).items():
            ours, plain = quickest(*pair)
            print(f"{name:18} {direction:8} {ours * 1e6:9.1f} us, plain C {plain * 1e6:9.1f} us: {ours / plain:.2f}")


if __name__ == "__main__":
    main()
