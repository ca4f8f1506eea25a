"""What `make demo` leaves behind, without its training."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils.data import TensorDataset

pytest.importorskip("matplotlib", reason="pictures need matplotlib: the extra demo")
pytest.importorskip("rich", reason="the demo prints with rich: the extra demo")

import matplotlib.image

from demo import pictures, text
from demo.__main__ import console_for


@pytest.mark.parametrize("wrong", [0, 1, 5, 9, 40])
def test_the_picture_of_misread_digits_is_as_large_as_what_it_shows(wrong, tmp_path):
    labels = tg.zeros(50, dtype=tg.int64)
    guesses = (tg.arange(50) < wrong).long()
    assert pictures.misread(TensorDataset(tg.ones(50, 1, 8, 8), labels), guesses, tmp_path / "misread.png") == wrong
    pixels = matplotlib.image.imread(tmp_path / "misread.png")[..., :3]
    height, width = pixels.shape[:2]
    columns, rows = min(max(wrong, 1), 8), -(-min(max(wrong, 1), 24) // 8)
    assert width >= columns * 150 and height >= rows * 150
    dark = (pixels < 0.5).all(2).any(0)
    if wrong:
        assert dark[: width // 3].any() or columns < 3
        assert dark[-width // 3 :].any() or columns < 3, "a part of it is empty"


def test_the_curve_says_why_held_out_may_stand_above_training(tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    with monkeypatch.context() as patch:
        patch.setattr(plt, "close", lambda figure: None)
        pictures.learning_curve([(1.0, 0.9, 0.95), (0.5, 0.93, 0.97)], tmp_path / "curve.png")
    assert "dropout" in plt.gcf().axes[1].get_legend().get_title().get_text()
    plt.close("all")


def test_lines_in_a_file_are_not_wrapped():
    out = io.StringIO()
    console_for(out).print("word " * 60)
    assert out.getvalue().count("\n") == 1


def test_the_zen_is_read_without_being_printed(capsys):
    words = text.zen()
    assert words.startswith("The Zen of Python, by Tim Peters") and words.endswith("let's do more of those!")
    assert capsys.readouterr().out == ""
    letters, codes = text.encoded(words)
    assert "".join(letters[c] for c in codes.tolist()) == words


def test_a_model_of_letters_learns_and_goes_on_with_letters_it_knows():
    letters, codes = text.encoded("abcd" * 20)
    tg.manual_seed(1)
    model = text.Letters(len(letters), 16)
    losses = text.train(model, codes, 40, length=8, batch=8)
    assert losses[0] > 1 and losses[-1] < 0.2
    assert text.continued(model, letters, "ab", 12, temperature=0.1) == "abcd" * 3 + "ab"


def test_the_chapter_on_text_shows_losses_and_a_sample(monkeypatch):
    monkeypatch.setattr(text, "STEPS", 12)
    monkeypatch.setattr(text, "UNITS", 8)
    out = io.StringIO()
    assert text.show(console_for(out)) < 3.9
    printed = out.getvalue()
    assert printed.count("→") == 6 and "Beautiful is" in printed
