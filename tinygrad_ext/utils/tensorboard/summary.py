"""What the panels of TensorBoard read, as its protobufs: one function for each kind.

Formats: the `.proto` files and plugins of TensorBoard 2.
"""

import io
import json
import math
import time
import wave

import numpy as np
from google.protobuf import text_format
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar.metadata import PLUGIN_NAME as _CUSTOM_SCALARS
from tensorboard.plugins.hparams import api_pb2 as hparams_api
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.hparams import plugin_data_pb2 as hparams_data
from tensorboard.plugins.hparams import summary_v2 as hparams_parts
from tensorboard.plugins.mesh import metadata as mesh_parts
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve import metadata as pr_curve_parts
from tensorboard.plugins.projector import projector_config_pb2
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.util import tensor_util

import tinygrad_ext as tg


def array(values):
    """A NumPy array of a tensor, an array, a number or lists of them."""
    if isinstance(values, tg.Tensor):
        values = values.detach()
        return (values.float() if values.dtype in (tg.bfloat16, tg.float16) else values).resolve_conj().numpy()
    if isinstance(values, (list, tuple)):
        return np.asarray([array(value) for value in values])
    return np.asarray(values)


def number(value):
    """One number of a tensor or array of one element."""
    found = array(value)
    if found.size != 1:
        raise ValueError(f"add_scalar: expected a scalar, a single number, but got a value of shape {found.shape}")
    return found.reshape(()).item()


def scalar(tag, value, new_style=False, double_precision=False):
    """One number; in the newer form as a tensor."""
    value = number(value)
    if new_style:
        return scalar_pb(tag, np.float64(value) if double_precision else np.float32(value))
    return Summary(value=[Summary.Value(tag=tag, simple_value=value)])


def tensor(tag, values):
    """Numbers as they are."""
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="tensor"))
    return Summary(
        value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor_util.make_tensor_proto(array(values)))]
    )


def _default_bins():
    """Borders that grow by a tenth from 1e-12 on, both ways, and zero between them."""
    steps = 1e-12 * 1.1 ** np.arange(774)
    return np.concatenate([-steps[::-1], [0], steps])


def histogram(tag, values, bins="tensorflow", max_bins=None):
    """How many values lie between borders: numbers, the name of a rule of `numpy.histogram`, or ``"tensorflow"``."""
    values = array(values).astype(np.float64).ravel()
    if not values.size:
        raise ValueError("The input has no element: add_histogram() counts at least one value")
    counts, borders = np.histogram(values, bins=_default_bins() if bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        every = -(-len(counts) // max_bins)
        starts = np.arange(0, len(counts), every)
        counts, borders = np.add.reduceat(counts, starts), np.append(borders[starts], borders[-1])
    (used,) = np.nonzero(counts)
    if len(used):  # an empty bin before the first one says where that begins
        first, last = max(used[0] - 1, 0), used[-1] + 1
        counts, borders = counts[first:last], borders[first : last + 1]
    return histogram_raw(
        tag, values.min(), values.max(), len(values), values.sum(), values.dot(values), borders[1:], counts
    )


def histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts):
    """Counts that are known, up to each limit."""
    if len(bucket_limits) != len(bucket_counts):
        raise ValueError(
            f"len(bucket_limits) != len(bucket_counts): expected as many limits as counts, but got "
            f"{len(bucket_limits)} and {len(bucket_counts)}"
        )
    lists = {"bucket_limit": array(bucket_limits).tolist(), "bucket": array(bucket_counts).tolist()}
    told = HistogramProto(min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, **lists)
    return Summary(value=[Summary.Value(tag=tag, histo=told)])


def _pixels(image, order, name):
    """An image as (height, width, channels) bytes; floats are 0 to 1."""
    image = array(image)
    if image.ndim != len(order) or sorted(order) not in (["C", "H", "W"], ["H", "W"]):
        raise ValueError(
            f"{name}: the image has shape {image.shape}, and dataformats says {order!r}: "
            "one letter of C, H and W for each dimension"
        )
    image = image.transpose([order.index(letter) for letter in "HWC" if letter in order])
    if image.ndim == 2:
        image = image[..., None]
    if image.shape[2] not in (1, 3, 4):
        raise ValueError(f"{name}: an image has 1, 3 or 4 channels, but got {image.shape[2]} (dataformats={order!r})")
    if image.dtype != np.uint8:
        image = (image.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    return image


def _picture(pixels):
    from PIL import Image  # lazy: an optional package, for pictures alone

    return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def _image_value(tag, pixels, encoded):
    height, width, channels = pixels.shape
    told = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=encoded)
    return Summary(value=[Summary.Value(tag=tag, image=told)])


def image(tag, values, dataformats="CHW", boxes=None, labels=None):
    """One picture as PNG, with rectangles (xmin, ymin, xmax, ymax) in pixels where they are given."""
    pixels, room = _pixels(values, dataformats.upper(), "add_image"), io.BytesIO()
    picture = _picture(pixels)
    if boxes is not None:
        from PIL import ImageDraw  # lazy: with the pictures

        picture = picture.convert("RGB")
        drawn = ImageDraw.Draw(picture)
        for k, box in enumerate(array(boxes).tolist()):
            drawn.rectangle(box, outline="red")
            if labels:
                drawn.text(box[:2], str(labels[k]), fill="red")
        pixels = np.asarray(picture)
    picture.save(room, "PNG")
    return _image_value(tag, pixels, room.getvalue())


def grid(images, dataformats):
    """Images of a batch side by side, as a square as far as they go: (height, width, channels)."""
    order, images = dataformats.upper(), array(images)
    if images.ndim != len(order) or order.count("N") != 1:
        raise ValueError(f"add_images: the images have shape {images.shape}, and dataformats says {dataformats!r}")
    each = [_pixels(one, order.replace("N", ""), "add_images") for one in np.moveaxis(images, order.index("N"), 0)]
    if not each:
        raise ValueError(f"add_images: expected one image at least, but got shape {images.shape}")
    columns = min(len(each), 8)
    each += [np.zeros_like(each[0])] * (-len(each) % columns)
    return np.concatenate([np.concatenate(each[k : k + columns], 1) for k in range(0, len(each), columns)])


def video(tag, frames, fps=4):
    """The first video of (N, T, C, H, W) as a GIF; others lie beside it."""
    frames, room = array(frames), io.BytesIO()
    if frames.ndim != 5:
        raise ValueError(f"add_video: expected videos of shape (N, T, C, H, W), but got shape {frames.shape}")
    pixels = [grid(frame, "NCHW") for frame in frames.swapaxes(0, 1)]
    first, *rest = [_picture(frame) for frame in pixels]
    first.save(room, "GIF", save_all=True, append_images=rest, duration=round(1000 / fps), loop=0)
    return _image_value(tag, pixels[0], room.getvalue())


def audio(tag, samples, sample_rate=44100):
    """Sound from -1 to 1 as a WAV file of 16 bits; (channels, frames) or frames alone."""
    samples, room = np.atleast_2d(array(samples).squeeze()), io.BytesIO()
    if samples.ndim != 2:
        raise ValueError(f"add_audio: expected (channels, frames) or frames, but got shape {samples.shape}")
    with wave.open(room, "wb") as file:
        file.setnchannels(len(samples))
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes((samples.clip(-1, 1) * 32767).T.astype("<i2").tobytes())
    told = Summary.Audio(sample_rate=sample_rate, num_channels=len(samples), length_frames=samples.shape[1])
    told.encoded_audio_string, told.content_type = room.getvalue(), "audio/wav"
    return Summary(value=[Summary.Value(tag=tag, audio=told)])


def text(tag, words):
    """Markdown, or lists of it."""
    return text_pb(tag, words)


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None):
    """Precision and recall of predictions from 0 to 1 at as many thresholds, evenly spaced."""
    labels, predictions = array(labels).astype(bool).ravel(), array(predictions).ravel()
    weights = np.ones(len(labels)) if weights is None else np.broadcast_to(array(weights), labels.shape).ravel()
    if len(labels) != len(predictions):
        raise ValueError(
            f"add_pr_curve: expected as many labels as predictions, but got {len(labels)} and {len(predictions)}"
        )
    n = min(num_thresholds, 127)
    bucket = np.floor(predictions * (n - 1)).clip(0, n - 1).astype(np.int64)
    above = [np.bincount(bucket, weights * chosen, minlength=n)[::-1].cumsum()[::-1] for chosen in (labels, ~labels)]
    return pr_curve_raw(tag, *above, above[1][0] - above[1], above[0][0] - above[0], None, None, n)


def pr_curve_raw(tag, true_positive, false_positive, true_negative, false_negative, precision, recall, num_thresholds):
    """The same of counts that are known; None for a ratio that follows from them."""
    yes, no, missed = (array(counts).astype(np.float64) for counts in (true_positive, false_positive, false_negative))
    if precision is None:
        precision, recall = yes / np.maximum(yes + no, 1e-7), yes / np.maximum(yes + missed, 1e-7)
    rows = np.stack([array(row) for row in (yes, no, true_negative, missed, precision, recall)]).astype(np.float32)
    metadata = pr_curve_parts.create_summary_metadata(tag, "", min(num_thresholds, 127))
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor_util.make_tensor_proto(rows))])


def mesh(tag, vertices, colors=None, faces=None, config_dict=None):
    """A three-dimensional mesh: vertices (batch, n, 3), colors alike, faces (batch, m, 3)."""
    parts = (
        (vertices, MeshPluginData.VERTEX, np.float32),
        (faces, MeshPluginData.FACE, np.int32),
        (colors, MeshPluginData.COLOR, np.uint8),
    )
    given = [(array(part).astype(dtype), kind) for part, kind, dtype in parts if part is not None]
    every, config = (
        mesh_parts.get_components_bitmask([kind for _, kind in given]),
        json.dumps(config_dict or {}, sort_keys=True),
    )
    told = Summary()
    for part, kind in given:
        about = mesh_parts.create_summary_metadata(tag, None, kind, every, list(part.shape), json_config=config)
        told.value.add(
            tag=mesh_parts.get_instance_name(tag, kind), metadata=about, tensor=tensor_util.make_tensor_proto(part)
        )
    return told


def custom_scalars(layout):
    """A layout of charts: categories of charts, each a list of its kind, "Multiline" or "Margin", and tags."""
    told = layout_pb2.Layout()
    for category, charts in layout.items():
        part = told.category.add(title=category)
        for title, (kind, tags) in charts.items():
            chart = part.chart.add(title=title)
            if kind == "Margin":
                chart.margin.series.add(value=tags[0], lower=tags[1], upper=tags[2])
            else:
                chart.multiline.tag.extend(tags)
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=_CUSTOM_SCALARS))
    value = tensor_util.make_tensor_proto(told.SerializeToString(), shape=())
    return Summary(value=[Summary.Value(tag="custom_scalars__config__", metadata=metadata, tensor=value)])


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None):
    """The three summaries of a run's hyperparameters: of the experiment, of its start and of its end."""
    plain = {}
    for name, value in (hparam_dict or {}).items():
        plain[name] = number(value) if isinstance(value, tg.Tensor) else value
        if not isinstance(plain[name], (bool, int, float, str)):
            raise ValueError(
                f"add_hparams: value of {name!r} should be one of int, float, str, bool, or Tensor, got {value!r}"
            )
    discrete = hparam_domain_discrete or {}
    domains = [
        hparams_parts.HParam(name, hparams_parts.Discrete(discrete[name]) if name in discrete else None)
        for name in plain
    ]
    config = hparams_parts.hparams_config_pb(domains, [hparams_parts.Metric(name) for name in metric_dict or {}])
    ended = hparams_data.SessionEndInfo(status=hparams_api.STATUS_SUCCESS, end_time_secs=time.time())
    about = hparams_metadata.create_summary_metadata(hparams_data.HParamsPluginData(session_end_info=ended))
    end = Summary(value=[Summary.Value(tag=hparams_metadata.SESSION_END_INFO_TAG, metadata=about)])
    return config, hparams_parts.hparams_pb(plain), end


def projector_entry(name, tensors, metadata=None, sprite=None, size=None):
    """One embedding of the projector's configuration: the files it lies in, and the height and width of a sprite."""
    told = projector_config_pb2.ProjectorConfig()
    entry = told.embeddings.add(tensor_name=name, tensor_path=tensors)
    if metadata:
        entry.metadata_path = metadata
    if sprite:
        entry.sprite.image_path = sprite
        entry.sprite.single_image_dim.extend(size[::-1])
    return text_format.MessageToString(told)


def sprite(images):
    """Images (N, C, H, W) as a square of as many each way, with empty ones at the end."""
    pixels = [_pixels(one, "CHW", "add_embedding") for one in array(images)]
    side = math.ceil(len(pixels) ** 0.5)
    pixels += [np.zeros_like(pixels[0])] * (side * side - len(pixels))
    rows = [np.concatenate(pixels[k : k + side], 1) for k in range(0, side * side, side)]
    return _picture(np.concatenate(rows))
