"""`SummaryWriter` on the event files of the package tensorboard."""

import os
import socket
import time
from urllib.parse import quote

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary


class FileWriter(EventFileWriter):
    """Event files in a folder.

    Args:
        log_dir: the folder, which is made.
        max_queue: events that wait before a call does.
        flush_secs: seconds after which they are written.
        filename_suffix: the end of the file's name.
    """

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        super().__init__(os.fspath(log_dir), max_queue, flush_secs, filename_suffix)

    def add_summary(self, summary, global_step=None, walltime=None):
        """Write a Summary at a step."""
        event = Event(wall_time=time.time() if walltime is None else walltime, summary=summary)
        if global_step is not None:
            event.step = int(global_step)
        self.add_event(event)


class SummaryWriter:
    """Writes what a training run shows in TensorBoard.

    Tensors may be of any dtype and may require gradients. Every ``add_...`` takes ``global_step``, the number of the
    step, and ``walltime``, seconds since the epoch instead of now.

    Args:
        log_dir: the folder; by default ``runs/``, the date and the host's name.
        comment: the end of the default folder's name.
        purge_step: events from this step on that an earlier run wrote are hidden.
        max_queue: events that wait before a call does.
        flush_secs: seconds after which they are written.
        filename_suffix: the end of the file's name.
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            log_dir = os.path.join("runs", f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer = self.all_writers = None
        self._get_file_writer()

    def _open(self, log_dir):
        return FileWriter(log_dir, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self):
        """The writer of the run's own folder, opened again where it was closed."""
        if self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                start = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(
                    Event(wall_time=time.time(), step=self.purge_step, file_version="brain.Event:2")
                )
                self.file_writer.add_event(Event(wall_time=time.time(), step=self.purge_step, session_log=start))
                self.purge_step = None
        return self.file_writer

    def _add(self, told, global_step, walltime):
        self._get_file_writer().add_summary(told, global_step, walltime)

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """One number of a curve.

        Raises:
            ValueError: the value is no single number.
        """
        self._add(summary.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Numbers of several curves in one chart, each in a folder of its own."""
        main = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(main, f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self.all_writers:
                self.all_writers[folder] = self._open(folder)
            self.all_writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """A tensor as it is."""
        self._add(summary.tensor(tag, tensor), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """How values are spread; bins as `numpy.histogram` takes them, or borders that grow by a tenth.

        Raises:
            ValueError: there is no value.
        """
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None
    ):
        """The same of counts that are known.

        Raises:
            ValueError: other than as many limits as counts.
        """
        self._add(
            summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts),
            global_step,
            walltime,
        )

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """One picture, of bytes or of floats from 0 to 1; dataformats names its dimensions.

        Raises:
            ValueError: a shape that does not fit.
        """
        self._add(summary.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """The pictures of a batch side by side, eight in a row.

        Raises:
            ValueError: a shape that does not fit.
        """
        self._add(summary.image(tag, summary.grid(img_tensor, dataformats), "HWC"), global_step, walltime)

    def add_image_with_boxes(
        self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW", labels=None
    ):
        """One picture with rectangles (n, 4) of xmin, ymin, xmax, ymax in pixels, and a word for each.

        Raises:
            ValueError: a shape that does not fit, or a size other than the picture's own.
        """
        if rescale != 1:
            raise ValueError(f"add_image_with_boxes: pictures keep their size, expected rescale=1, but got {rescale}")
        labels = [labels] if isinstance(labels, str) else labels
        self._add(summary.image(tag, img_tensor, dataformats, box_tensor, labels), global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of Matplotlib as a picture, or figures side by side, which are closed afterwards."""
        from matplotlib import pyplot  # lazy: an optional package, which the figures are of
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # lazy: with it

        figures, pixels = figure if isinstance(figure, (list, tuple)) else [figure], []
        for one in figures:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            pixels.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(one)
        self._add(summary.image(tag, summary.grid(np.stack(pixels), "NHWC"), "HWC"), global_step, walltime)

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        """Videos (N, T, C, H, W) side by side.

        Raises:
            ValueError: another number of dimensions.
        """
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Sound from -1 to 1, ``sample_rate`` frames a second.

        Raises:
            ValueError: more than two dimensions.
        """
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_onnx_graph(self, prototxt):
        """Refuse.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "add_onnx_graph: graphs are drawn by tensorboardX; python -m pip install tensorboardX"
        )

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Refuse.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "add_graph: TensorBoard's graphs are not written: jit.trace(model, inputs).graph shows one, "
            "profiler.export_chrome_trace() what ran"
        )

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Points (n, d) for the projector, with a label or a row of labels, and a picture (n, c, h, w), for each.

        Raises:
            ValueError: other than as many labels or pictures as points.
        """
        points = summary.array(mat)
        name = "default" if tag is None else tag
        folder = f"{0 if global_step is None else int(global_step):05d}/{quote(name, safe='')}"
        os.makedirs(os.path.join(self.get_logdir(), folder), exist_ok=True)

        def rows(file, lines):
            path = os.path.join(self.get_logdir(), folder, file)
            with open(path, "w", encoding="utf-8") as f:
                f.writelines("\t".join(map(str, line)) + "\n" for line in lines)
            return f"{folder}/{file}"

        for title, given in (("labels", metadata), ("images", label_img)):
            if given is not None and len(given) != len(points):
                raise ValueError(
                    f"#{title} should equal with #data points: got {len(given)} {title} and {len(points)} points"
                )
        entry = {"name": f"{name}:{folder.split('/')[0]}", "tensors": rows("tensors.tsv", points.tolist())}
        if metadata is not None:
            lines = [line if isinstance(line, (list, tuple)) else [line] for line in metadata]
            entry["metadata"] = rows("metadata.tsv", [metadata_header, *lines] if metadata_header else lines)
        if label_img is not None:
            entry["sprite"], entry["size"] = f"{folder}/sprite.png", tuple(label_img.shape[2:])
            summary.sprite(label_img).save(os.path.join(self.get_logdir(), entry["sprite"]))
        with open(os.path.join(self.get_logdir(), "projector_config.pbtxt"), "a", encoding="utf-8") as f:
            f.write(summary.projector_entry(**entry))

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Precision and recall of predictions from 0 to 1 beside labels of 0 and 1.

        Raises:
            ValueError: other than as many labels as predictions.
        """
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag,
        true_positive_counts,
        false_positive_counts,
        true_negative_counts,
        false_negative_counts,
        precision,
        recall,
        global_step=None,
        num_thresholds=127,
        weights=None,
        walltime=None,
    ):
        """The same of counts at each threshold."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        self._add(summary.pr_curve_raw(tag, *counts, precision, recall, num_thresholds), global_step, walltime)

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        """One chart of several curves."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """One chart of a curve between two others: tags of the value, of the lower and the upper one.

        Raises:
            ValueError: other than three tags.
        """
        if len(tags) != 3:
            raise ValueError(f"add_custom_scalars_marginchart: expected three tags, but got {len(tags)}")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout):
        """Charts by categories: {category: {chart: [kind, tags]}}."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_mesh(self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None):
        """A mesh of vertices (batch, n, 3), their colors alike, from 0 to 255, and faces (batch, m, 3)."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """The hyperparameters of a run and what it reached, in a folder of its own.

        Raises:
            TypeError: no dicts.
            ValueError: a hyperparameter that is no bool, number or str.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        told = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as run:
            for part in told:
                run._add(part, global_step, None)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    def flush(self):
        """Write what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        """Write what waits and close the files; another ``add_...`` opens one again."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.close()
