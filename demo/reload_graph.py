"""A new process without the model's class: loads its graphs and checks that they give the saved scores bit for bit."""

import sys
from pathlib import Path

import tinygrad_ext as tg
from demo.data import digits


def main(folder):
    model = tg.jit.load(folder / "digits.tgx")
    saved = tg.load(folder / "scores.safetensors")["scores"]
    images = digits()[1].tensors[0]
    with tg.no_grad():
        again = tg.cat([model(part) for part in images.split(256)])
    if saved.numpy().tobytes() != again.numpy().tobytes():
        sys.exit("the loaded graphs do not give the same scores")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
