"""A new process: loads the saved weights and checks that they give the saved scores bit for bit."""

import sys
from pathlib import Path

import tinygrad_ext as tg
from demo.data import digits
from demo.model import DigitsNet, scores_of


def main(folder):
    model = DigitsNet()
    model.load_state_dict(tg.load(folder / "digits.safetensors"))
    saved = tg.load(folder / "scores.safetensors")["scores"]
    again = scores_of(model, digits()[1])
    if saved.numpy().tobytes() != again.numpy().tobytes():
        sys.exit("the reloaded model does not give the same scores")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
