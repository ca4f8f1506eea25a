"""Programs as users write them: detection with its transforms, several outputs, streams, power iteration."""

import math, enum, copy
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple, NamedTuple, Union, Any, Final, Callable
import tinygrad_ext as torch
import tinygrad_ext.nn.functional as F
from tinygrad_ext import Tensor, nn

CASES = []


def case(*rows):
    def keep(obj):
        CASES.append((obj.__name__, obj, rows))
        return obj

    return keep


t = torch.tensor
torch.manual_seed(0)


# multi-task heads by string with error
@case((torch.randn(2, 4), "cls"), (torch.randn(2, 4), "reg"), (torch.randn(2, 4), "other"))
class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"cls": nn.Linear(4, 3), "reg": nn.Linear(4, 1)})

    def forward(self, x: Tensor, task: str) -> Tensor:
        for name, head in self.heads.items():
            if name == task:
                return head(x)
        raise KeyError("no task " + task)


# wrapped detection model: list of dict outputs (torchvision style)
class ImageList:
    def __init__(self, tensors: Tensor, sizes: List[Tuple[int, int]]) -> None:
        self.tensors = tensors
        self.image_sizes = sizes


class Transform(nn.Module):
    def __init__(self, mean: List[float]):
        super().__init__()
        self.mean = mean
        self.size_divisible = 4

    def max_by_axis(self, the_list: List[List[int]]) -> List[int]:
        maxes = the_list[0]
        for sublist in the_list[1:]:
            for index, item in enumerate(sublist):
                maxes[index] = max(maxes[index], item)
        return maxes

    def batch_images(self, images: List[Tensor]) -> Tensor:
        max_size = self.max_by_axis([list(img.shape) for img in images])
        stride = float(self.size_divisible)
        max_size = list(max_size)
        max_size[1] = int(math.ceil(float(max_size[1]) / stride) * stride)
        max_size[2] = int(math.ceil(float(max_size[2]) / stride) * stride)
        batch_shape = [len(images)] + max_size
        batched = images[0].new_full(batch_shape, 0)
        for i in range(batched.shape[0]):
            img = images[i]
            batched[i, : img.shape[0], : img.shape[1], : img.shape[2]].copy_(img)
        return batched

    def forward(
        self, images: List[Tensor], targets: Optional[List[Dict[str, Tensor]]] = None
    ) -> Tuple[ImageList, Optional[List[Dict[str, Tensor]]]]:
        images = [img for img in images]
        if targets is not None:
            targets_copy: List[Dict[str, Tensor]] = []
            for tt in targets:
                data: Dict[str, Tensor] = {}
                for k, v in tt.items():
                    data[k] = v
                targets_copy.append(data)
            targets = targets_copy
        for i in range(len(images)):
            image = images[i]
            if image.dim() != 3:
                raise ValueError(f"images is expected to be a list of 3d tensors of shape [C, H, W], got {image.shape}")
            mean = torch.as_tensor(self.mean, dtype=image.dtype, device=image.device)
            images[i] = image - mean[:, None, None]
        image_sizes = [img.shape[-2:] for img in images]
        images = self.batch_images(images)
        image_sizes_list: List[Tuple[int, int]] = []
        for image_size in image_sizes:
            assert len(image_size) == 2, (
                f"Input tensors expected to have in the last two elements H and W, instead got {image_size}"
            )
            image_sizes_list.append((image_size[0], image_size[1]))
        return ImageList(images, image_sizes_list), targets


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.transform = Transform([0.5, 0.1])
        self.backbone = nn.Sequential(OrderedDict([("conv", nn.Conv2d(2, 4, 3, padding=1)), ("act", nn.ReLU())]))
        self.head = nn.Conv2d(4, 2, 1)
        self._has_warned = False

    @torch.jit.unused
    def eager_outputs(
        self, losses: Dict[str, Tensor], detections: List[Dict[str, Tensor]]
    ) -> Union[Dict[str, Tensor], List[Dict[str, Tensor]]]:
        if self.training:
            return losses
        return detections

    def forward(
        self, images: List[Tensor], targets: Optional[List[Dict[str, Tensor]]] = None
    ) -> Tuple[Dict[str, Tensor], List[Dict[str, Tensor]]]:
        if self.training:
            assert targets is not None, "targets should not be none when in training mode"
            for target in targets:
                boxes = target["boxes"]
                if isinstance(boxes, torch.Tensor):
                    assert len(boxes.shape) == 2 and boxes.shape[-1] == 4, f"got {boxes.shape}"
        original: List[Tuple[int, int]] = []
        for img in images:
            val = img.shape[-2:]
            original.append((val[0], val[1]))
        image_list, targets = self.transform(images, targets)
        feats = self.head(self.backbone(image_list.tensors))
        losses: Dict[str, Tensor] = {}
        detections: List[Dict[str, Tensor]] = []
        if self.training:
            assert targets is not None
            losses["loss"] = feats.pow(2).mean() + sum([tt["boxes"].sum() for tt in targets])
        else:
            for i, (h, w) in enumerate(image_list.image_sizes):
                detections.append({"scores": feats[i, :, :h, :w].amax(dim=(-1, -2))})
        return losses, detections


imgs = [torch.randn(2, 5, 6), torch.randn(2, 3, 7)]
CASES.append(
    (
        "Detector",
        Detector,
        (
            (imgs, [{"boxes": torch.ones(2, 4)}, {"boxes": torch.ones(1, 4)}]),
            (imgs, None),
            ([torch.randn(3, 3)], [{"boxes": torch.ones(1, 4)}]),
        ),
    )
)


class DetEval(Detector):
    def __init__(self):
        super().__init__()
        self.eval()


CASES.append(("DetEval", DetEval, ((imgs,),)))


# IntermediateLayerGetter-like
@case(torch.randn(1, 2, 4, 4))
class Getter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.ModuleDict(OrderedDict([("a", nn.Conv2d(2, 3, 1)), ("b", nn.ReLU()), ("c", nn.Conv2d(3, 2, 1))]))
        self.return_layers = {"a": "0", "c": "1"}

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        out: Dict[str, Tensor] = {}
        for name, module in self.body.items():
            x = module(x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out


# densenet layer w/ list inputs and overloads by isinstance
@case(([torch.randn(1, 2, 4, 4), torch.randn(1, 1, 4, 4)],), (torch.randn(1, 3, 4, 4),))
class DenseLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        self.conv = nn.Conv2d(3, 2, 3, padding=1)
        self.drop_rate = 0.0
        self.memory_efficient = False

    def bn_function(self, inputs: List[Tensor]) -> Tensor:
        return self.conv(F.relu(self.norm(torch.cat(inputs, 1))))

    def forward(self, input: Union[Tensor, List[Tensor]]) -> Tensor:
        if isinstance(input, Tensor):
            prev = [input]
        else:
            prev = input
        y = self.bn_function(prev)
        if self.drop_rate > 0:
            y = F.dropout(y, p=self.drop_rate, training=self.training)
        return y


# googlenet outputs
class Outs(NamedTuple):
    logits: Tensor
    aux: Optional[Tensor]


@case(torch.randn(2, 4))
class Aux(nn.Module):
    __constants__ = ["aux_logits"]

    def __init__(self, aux_logits=True):
        super().__init__()
        self.aux_logits = aux_logits
        self.fc = nn.Linear(4, 2)
        self.aux1 = nn.Linear(4, 2) if aux_logits else None

    def forward(self, x: Tensor) -> Outs:
        aux: Optional[Tensor] = None
        if self.aux1 is not None:
            if self.training:
                aux = self.aux1(x)
        defined = self.training and self.aux_logits
        if torch.jit.is_scripting():
            if not defined:
                print("warn")
            return Outs(self.fc(x), aux)
        else:
            return Outs(self.fc(x), aux)


class AuxOff(Aux):
    def __init__(self):
        super().__init__(False)


CASES.append(("AuxOff", AuxOff, (torch.randn(2, 4),)))


# squeeze-excite with class-level constants + property
@case(torch.randn(1, 4, 3, 3))
class SE(nn.Module):
    REDUCTION: Final[int] = 2

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Conv2d(4, 2, 1)
        self.fc2 = nn.Conv2d(2, 4, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)

    @property
    def ratio(self) -> float:
        return 1.0 / self.REDUCTION

    def _scale(self, x: Tensor) -> Tensor:
        s = self.pool(x)
        s = F.relu(self.fc1(s))
        return torch.sigmoid(self.fc2(s)) * self.ratio

    def forward(self, x: Tensor) -> Tensor:
        return self._scale(x) * x


# seq2seq with teacher forcing & packed lengths
@case((torch.randint(0, 5, (2, 4)), [4, 2], torch.randint(0, 5, (2, 3))), (torch.randint(0, 5, (1, 2)), [2], None))
class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(5, 3)
        self.enc = nn.Linear(6, 3)
        self.dec = nn.Linear(6, 3)
        self.out = nn.Linear(3, 5)
        self.max_steps = 3

    def encode(self, src: Tensor, lengths: List[int]) -> Tensor:
        h = torch.zeros(src.size(0), 3)
        for i in range(src.size(1)):
            new = torch.tanh(self.enc(torch.cat([self.emb(src[:, i]), h], -1)))
            live = torch.tensor([1.0 if i < n else 0.0 for n in lengths]).unsqueeze(-1)
            h = live * new + (1 - live) * h
        return h

    def forward(self, src: Tensor, lengths: List[int], target: Optional[Tensor]) -> Tuple[Tensor, Optional[Tensor]]:
        h = self.encode(src, lengths)
        token = torch.zeros(src.size(0), dtype=torch.long)
        logits = []
        steps = target.size(1) if target is not None else self.max_steps
        for i in range(steps):
            h = torch.tanh(self.dec(torch.cat([self.emb(token), h], -1)))
            o = self.out(h)
            logits.append(o)
            if target is not None:
                token = target[:, i]
            else:
                token = o.argmax(-1)
        y = torch.stack(logits, 1)
        loss: Optional[Tensor] = None
        if target is not None:
            loss = F.cross_entropy(y.reshape(-1, 5), target.reshape(-1))
        return y, loss


# stateful streaming conv with Optional buffer attribute
@case(torch.randn(1, 2, 3), torch.randn(1, 2, 1))
class Stream(nn.Module):
    cache: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3)
        self.cache = None

    def forward(self, x: Tensor) -> Tensor:
        cache = self.cache
        if cache is None:
            cache = torch.zeros(x.size(0), x.size(1), 2)
        x = torch.cat([cache, x], 2)
        self.cache = x[:, :, -2:].detach()
        return self.conv(x)


# spectral norm-like power iteration w/ no_grad and buffers in place
@case(torch.randn(2, 3))
class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))
        self.register_buffer("u", F.normalize(torch.randn(4), dim=0))
        self.n_power_iterations = 2

    def forward(self, x):
        w = self.weight
        with torch.no_grad():
            for _ in range(self.n_power_iterations):
                v = F.normalize(torch.mv(w.t(), self.u), dim=0, eps=1e-12)
                self.u.copy_(F.normalize(torch.mv(w, v), dim=0))
        v = F.normalize(torch.mv(w.t(), self.u), dim=0).detach()
        sigma = torch.dot(self.u.clone(), torch.mv(w, v))
        return F.linear(x, w / sigma)


# kmeans
@case((torch.randn(10, 2), 3, 5))
def kmeans(x: Tensor, k: int, iters: int) -> Tuple[Tensor, List[int]]:
    centers = x[:k].clone()
    counts: List[int] = []
    for it in range(iters):
        d = ((x[:, None] - centers[None]) ** 2).sum(-1)
        who = d.argmin(1)
        counts = []
        new: List[Tensor] = []
        for j in range(k):
            mask = who == j
            n = int(mask.sum())
            counts.append(n)
            new.append(x[mask].mean(0) if n > 0 else centers[j])
        moved = torch.stack(new)
        if torch.allclose(moved, centers):
            break
        centers = moved
    return centers, counts


# JSON-ish parser of key=value config strings
@case("lr=0.1;steps=3;name=adam", "bad", "lr=x")
def parse(text: str) -> Tuple[Dict[str, float], Dict[str, str]]:
    numbers: Dict[str, float] = {}
    words: Dict[str, str] = {}
    for part in text.split(";"):
        if "=" not in part:
            raise ValueError("no '=' in {}".format(part))
        at = part.find("=")
        key, value = part[:at].strip(), part[at + 1 :].strip()
        if value.replace(".", "").isdigit():
            numbers[key] = float(value)
        else:
            words[key.upper()] = value
    return numbers, words


# linear attention with complex (rope)
@case((torch.randn(2, 3, 4), 10000.0))
def rope(x: Tensor, base: float) -> Tensor:
    n, d = x.size(-2), x.size(-1)
    freqs = 1.0 / (base ** (torch.arange(0, d, 2).float() / d))
    ang = torch.outer(torch.arange(n).float(), freqs)
    z = torch.view_as_complex(x.reshape(2, n, d // 2, 2)) * torch.complex(torch.cos(ang), torch.sin(ang))
    return torch.view_as_real(z).flatten(-2)
