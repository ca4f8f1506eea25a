"""`SummaryWriter` on the package tensorboard, read back by its own loader."""

import subprocess
import sys

import numpy as np
import pytest

import tinygrad_ext as tg

WITHOUT = "import sys; sys.modules['tensorboardX'] = None; "


@pytest.fixture
def writer_of(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    from tinygrad_ext.utils.tensorboard import SummaryWriter

    return lambda **options: SummaryWriter(tmp_path / "run", **options)


def read(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder), size_guidance={"tensors": 0, "images": 0, "audio": 0}).Reload()


def test_without_its_packages_it_says_what_to_install():
    code = WITHOUT + (
        "sys.modules['tensorboard'] = None\n"
        "try:\n    from tinygrad_ext.utils.tensorboard import SummaryWriter\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install tensorboard" in done.stdout


def test_under_the_name_of_torch_it_is_where_libraries_import_it_from():
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    code = WITHOUT + (
        "from tinygrad_ext import as_torch; as_torch.install()\n"
        "from torch.utils.tensorboard import SummaryWriter\n"
        "from torch.utils.tensorboard.summary import hparams\n"
        "from torch.utils.tensorboard.writer import FileWriter, SummaryWriter as again\n"
        "print(SummaryWriter is again, len(hparams({'rate': 1}, {'loss': 2.0})), FileWriter.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True 3 FileWriter\n"


def test_numbers_and_counts_come_back(writer_of, tmp_path):
    values = tg.tensor([-2.0, -0.5, 0.0, 0.5, 0.75, 3.0], requires_grad=True)
    with writer_of() as w:
        for step in range(3):
            w.add_scalar("loss", tg.tensor(1.5 - step, requires_grad=True), step, walltime=100 + step)
        w.add_scalar("new", 0.1, new_style=True, double_precision=True)
        w.add_scalars("both/two", {"a": 1.0, "b": tg.tensor(2)}, 4)
        w.add_histogram("weights", values, 7)
        w.add_histogram("few", values, 7, bins="auto", max_bins=2)
        w.add_tensor("whole", values)
        w.add_text("note", "*so*", 2)
        assert w.get_logdir() == w.log_dir == str(tmp_path / "run")
    found = read(tmp_path / "run")
    assert [(e.wall_time, e.step, e.value) for e in found.Scalars("loss")] == [(100 + k, k, 1.5 - k) for k in range(3)]
    (told,) = found.Histograms("weights")
    assert (told.step, told.histogram_value.num, told.histogram_value.sum) == (7, 6, 1.75)
    assert (told.histogram_value.min, told.histogram_value.max) == (-2, 3)
    limits, counts = told.histogram_value.bucket_limit, np.array(told.histogram_value.bucket)
    assert counts.sum() == 6 and len(limits) == len(counts)
    for value in values.tolist():  # each lies in a bin that counts something
        assert counts[np.searchsorted(limits, value, "right" if value < max(limits) else "left")] > 0
    (few,) = found.Histograms("few")
    assert 1 <= len(few.histogram_value.bucket) <= 2 and sum(few.histogram_value.bucket) == 6
    assert {"new", "whole", "note"} <= set(found.Tags()["tensors"])
    for name, value in (("a", 1.0), ("b", 2.0)):
        assert read(tmp_path / "run" / f"both_two_{name}").Scalars("both/two")[0].value == value


def test_pictures_and_sound(writer_of, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    import io

    drawn = tg.rand(3, 4, 6)
    with writer_of() as w:
        w.add_image("one", drawn, 1)
        w.add_image("grey", (drawn[0] * 255).to(tg.uint8), dataformats="HW")
        w.add_images("some", drawn.expand(10, 3, 4, 6))
        w.add_image_with_boxes("boxed", tg.zeros(3, 8, 8), tg.tensor([[1, 1, 5, 5]]), labels="x")
        w.add_video("moved", drawn.expand(1, 5, 3, 4, 6))
        w.add_audio("heard", tg.sin(tg.arange(100.0)), sample_rate=8000)
    found = read(tmp_path / "run")
    (told,) = found.Images("one")
    assert (told.height, told.width) == (4, 6)
    pixels = np.asarray(Image.open(io.BytesIO(told.encoded_image_string)))
    assert (pixels == (drawn * 255).to(tg.uint8).permute(1, 2, 0).numpy()).all()
    (some,) = found.Images("some")
    assert (some.height, some.width) == (8, 48)
    assert np.asarray(Image.open(io.BytesIO(found.Images("boxed")[0].encoded_image_string)))[1, 1].tolist() == [
        255,
        0,
        0,
    ]
    assert Image.open(io.BytesIO(found.Images("moved")[0].encoded_image_string)).n_frames >= 1
    (heard,) = found.Audio("heard")
    assert (heard.sample_rate, heard.length_frames) == (8000, 100)


def test_curves_points_meshes_and_runs(writer_of, tmp_path):
    from tensorboard.util import tensor_util

    labels, chances = tg.tensor([0, 1, 1, 0]), tg.tensor([0.1, 0.9, 0.4, 0.6])
    with writer_of() as w:
        w.add_pr_curve("curve", labels, chances, num_thresholds=11)
        w.add_mesh("mesh", tg.rand(1, 4, 3), faces=tg.tensor([[[0, 1, 2], [1, 2, 3]]]))
        w.add_embedding(tg.eye(3), ["a", "b", "c"], tg.rand(3, 1, 4, 4), 5, "points")
        w.add_embedding(tg.eye(2), [["a", 1], ["b", 2]], metadata_header=["name", "n"])
        w.add_custom_scalars_multilinechart(["loss", "new"])
        w.add_custom_scalars_marginchart(["loss", "low", "high"])
        w.add_hparams({"lr": 0.1, "name": "x", "deep": tg.tensor(3)}, {"reached": 0.5}, {"lr": [0.1, 0.2]}, "run 1")
        w.flush()
    found = read(tmp_path / "run")
    yes, no, _, missed, precision, recall = tensor_util.make_ndarray(found.Tensors("curve")[0].tensor_proto)
    for k, threshold in enumerate(np.arange(11) / 10):
        above = np.floor(chances.numpy() * 10) >= k
        assert (yes[k], no[k]) == ((above & (labels.numpy() == 1)).sum(), (above & (labels.numpy() == 0)).sum()), (
            threshold
        )
        assert missed[k] == 2 - yes[k] and recall[k] == yes[k] / 2
    assert precision[0] == 0.5
    told = (tmp_path / "run" / "projector_config.pbtxt").read_text()
    assert told.count("embeddings") == 2 and "00005/points/sprite.png" in told
    assert (tmp_path / "run" / "00000" / "default" / "metadata.tsv").read_text() == "name\tn\na\t1\nb\t2\n"
    assert read(tmp_path / "run" / "run 1").Scalars("reached")[0].value == 0.5


def test_figures(writer_of, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure = pyplot.figure(figsize=(2, 1), dpi=50)
    with writer_of() as w:
        w.add_figure("plot", figure)
    (told,) = read(tmp_path / "run").Images("plot")
    assert (told.width, told.height) == (100, 50)
    assert not pyplot.fignum_exists(figure.number)


def test_a_closed_writer_opens_again_and_earlier_steps_are_hidden(writer_of, tmp_path):
    w = writer_of()
    for step in range(5):
        w.add_scalar("loss", step, step)
    w.close()
    w.add_scalar("loss", 5, 5)
    w.close()
    w = writer_of(purge_step=3, filename_suffix=".second")
    w.add_scalar("loss", 30, 3)
    w.close()
    assert any(file.name.endswith(".second") for file in (tmp_path / "run").iterdir())
    assert [e.value for e in read(tmp_path / "run").Scalars("loss")][-1] == 30


def test_what_is_refused(writer_of):
    with writer_of() as w:
        for call, error, words in (
            (lambda: w.add_scalar("a", tg.zeros(2)), ValueError, "single number"),
            (lambda: w.add_histogram("a", tg.zeros(0)), ValueError, "no element"),
            (lambda: w.add_histogram_raw("a", 0, 1, 1, 1, 1, [1.0], []), ValueError, "1 and 0"),
            (lambda: w.add_image("a", tg.zeros(5, 4, 4)), ValueError, "1, 3 or 4 channels"),
            (lambda: w.add_image("a", tg.zeros(4, 4)), ValueError, "dataformats says 'CHW'"),
            (lambda: w.add_images("a", tg.zeros(0, 3, 4, 4)), ValueError, "one image at least"),
            (lambda: w.add_video("a", tg.zeros(3, 4, 4)), ValueError, r"\(N, T, C, H, W\)"),
            (lambda: w.add_audio("a", tg.zeros(2, 2, 2)), ValueError, "channels, frames"),
            (lambda: w.add_pr_curve("a", tg.zeros(2), tg.zeros(3)), ValueError, "2 and 3"),
            (lambda: w.add_embedding(tg.zeros(2, 3), ["a"]), ValueError, "1 labels and 2 points"),
            (lambda: w.add_hparams([], {}), TypeError, "dictionary"),
            (lambda: w.add_hparams({"a": []}, {}), ValueError, "'a' should be one of"),
            (lambda: w.add_graph(tg.nn.Linear(2, 2)), NotImplementedError, "jit.trace"),
        ):
            with pytest.raises(error, match=words):
                call()
