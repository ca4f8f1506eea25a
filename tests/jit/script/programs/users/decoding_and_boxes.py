"""Programs as users write them: recommending, decoding, boxes, recurrent layers, configurations."""

import math, enum
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple, NamedTuple, Union, Any, Final
import tinygrad_ext as torch
import tinygrad_ext.nn.functional as F
from tinygrad_ext import Tensor, nn

CASES = []


def case(*rows, make=None):
    def keep(obj):
        CASES.append((obj.__name__, obj, rows))
        return obj

    return keep


t = torch.tensor
torch.manual_seed(0)


# recommender with dict of embeddings
@case(({"user": t([1, 2]), "item": t([0, 3])}, torch.randn(2, 3)), ({"user": t([0, 0])}, torch.randn(2, 3)))
class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleDict({"user": nn.Embedding(5, 4), "item": nn.Embedding(6, 4)})
        self.dense = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4))
        self.head = nn.Linear(4, 1)
        self.seen: Dict[str, int] = {}

    def forward(self, ids: Dict[str, Tensor], dense: Tensor) -> Dict[str, Tensor]:
        parts: List[Tensor] = [self.dense(dense)]
        for name, table in self.tables.items():
            if name in ids:
                parts.append(table(ids[name]))
                self.seen[name] = self.seen.get(name, 0) + 1
        x = torch.stack(parts).sum(0)
        logit = self.head(x).squeeze(-1)
        return {"logit": logit, "prob": torch.sigmoid(logit)}


# greedy NMS
@case((torch.rand(8, 2) * 4, torch.rand(8), 0.3), (torch.rand(3, 2), torch.rand(3), 0.9))
def nms(corner: Tensor, scores: Tensor, threshold: float) -> List[int]:
    boxes = torch.cat([corner, corner + 1.0], dim=1)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order = scores.argsort(descending=True)
    keep: List[int] = []
    while order.numel() > 0:
        i = int(order[0])
        keep.append(i)
        if order.numel() == 1:
            break
        rest = order[1:]
        lt = torch.maximum(boxes[i, :2], boxes[rest, :2])
        rb = torch.minimum(boxes[i, 2:], boxes[rest, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[:, 0] * wh[:, 1]
        iou = inter / (area[i] + area[rest] - inter)
        order = rest[iou <= threshold]
    return keep


# beam search
class Beam(NamedTuple):
    score: float
    tokens: List[int]


@case((3, 4), (1, 2))
class BeamSearch(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(6, 6)
        self.embed = nn.Embedding(6, 6)
        self.eos: Final[int] = 5

    def forward(self, width: int, steps: int) -> Tuple[List[int], float]:
        beams: List[Tuple[float, List[int]]] = [(0.0, [0])]
        done: List[Tuple[float, List[int]]] = []
        for _ in range(steps):
            grown: List[Tuple[float, List[int]]] = []
            for score, tokens in beams:
                logp = F.log_softmax(self.step(self.embed(torch.tensor([tokens[-1]]))), dim=-1)[0]
                top, at = logp.topk(width)
                for k in range(width):
                    cand = (score + float(top[k]), tokens + [int(at[k])])
                    if cand[1][-1] == self.eos:
                        done.append(cand)
                    else:
                        grown.append(cand)
            grown = sorted(grown, reverse=True)
            beams = grown[:width]
            if len(beams) == 0:
                break
        best = beams[0] if len(beams) > 0 else done[0]
        for b in done:
            if b[0] > best[0]:
                best = b
        return best[1], best[0]


# tokenizer
class Tok(nn.Module):
    def __init__(self):
        super().__init__()
        self.vocab: Dict[str, int] = {"<unk>": 0, "hello": 1, "world": 2, "test": 3}
        self.max_len = 6
        self.inverse: Dict[int, str] = {v: k for k, v in self.vocab.items()}

    def split(self, text: str) -> List[str]:
        out: List[str] = []
        word = ""
        for ch in text.lower():
            if ch.isalpha() or ch == "'":
                word += ch
            else:
                if len(word) > 0:
                    out.append(word)
                    word = ""
        if word != "":
            out.append(word)
        return out

    def forward(self, texts: List[str]) -> Tuple[Tensor, Tensor, List[str]]:
        rows: List[List[int]] = []
        lengths: List[int] = []
        for text in texts:
            ids = [self.vocab.get(w, 0) for w in self.split(text.strip())][: self.max_len]
            lengths.append(len(ids))
            while len(ids) < self.max_len:
                ids.append(0)
            rows.append(ids)
        words = [" ".join([self.inverse[i] for i in row]) for row in rows]
        return torch.tensor(rows), torch.tensor(lengths), words


Tok.__name__ = "Tokenizer"
CASES.append(("Tokenizer", Tok, ((["Hello, World!  it's a test", "a b c d e f g h"],), (["", "world"],))))


# fastrnns LSTM
class LSTMState(NamedTuple):
    hx: Tensor
    cx: Tensor


class LSTMCell(nn.Module):
    def __init__(self, i, h):
        super().__init__()
        self.weight_ih = nn.Parameter(torch.randn(4 * h, i))
        self.weight_hh = nn.Parameter(torch.randn(4 * h, h))
        self.bias_ih = nn.Parameter(torch.randn(4 * h))
        self.bias_hh = nn.Parameter(torch.randn(4 * h))

    def forward(self, input: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        hx, cx = state
        gates = torch.mm(input, self.weight_ih.t()) + self.bias_ih + torch.mm(hx, self.weight_hh.t()) + self.bias_hh
        i, f, c, o = gates.chunk(4, 1)
        cy = torch.sigmoid(f) * cx + torch.sigmoid(i) * torch.tanh(c)
        hy = torch.sigmoid(o) * torch.tanh(cy)
        return hy, (hy, cy)


class LSTMLayer(nn.Module):
    def __init__(self, cell, *args):
        super().__init__()
        self.cell = cell(*args)

    def forward(self, input: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        inputs = input.unbind(0)
        outputs = torch.jit.annotate(List[Tensor], [])
        for i in range(len(inputs)):
            out, state = self.cell(inputs[i], state)
            outputs += [out]
        return torch.stack(outputs), state


class ReverseLSTMLayer(nn.Module):
    def __init__(self, cell, *args):
        super().__init__()
        self.cell = cell(*args)

    def forward(self, input: Tensor, state: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        inputs = input.unbind(0)
        outputs: List[Tensor] = []
        for i in range(len(inputs)):
            out, state = self.cell(inputs[len(inputs) - 1 - i], state)
            outputs = [out] + outputs
        return torch.stack(outputs), state


class BidirLSTMLayer(nn.Module):
    __constants__ = ["directions"]

    def __init__(self, cell, *args):
        super().__init__()
        self.directions = nn.ModuleList([LSTMLayer(cell, *args), ReverseLSTMLayer(cell, *args)])

    def forward(self, input: Tensor, states: List[Tuple[Tensor, Tensor]]) -> Tuple[Tensor, List[Tuple[Tensor, Tensor]]]:
        outputs = torch.jit.annotate(List[Tensor], [])
        output_states = torch.jit.annotate(List[Tuple[Tensor, Tensor]], [])
        i = 0
        for direction in self.directions:
            state = states[i]
            out, out_state = direction(input, state)
            outputs += [out]
            output_states += [out_state]
            i += 1
        return torch.cat(outputs, -1), output_states


@case(
    (torch.randn(5, 2, 3), [[(torch.zeros(2, 4), torch.zeros(2, 4))] * 2, [(torch.ones(2, 4), torch.zeros(2, 4))] * 2])
)
class StackedBidir(nn.Module):
    __constants__ = ["layers"]

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([BidirLSTMLayer(LSTMCell, 3, 4), BidirLSTMLayer(LSTMCell, 8, 4)])
        self.dropout = nn.Dropout(0.0)
        self.num_layers = 2

    def forward(
        self, input: Tensor, states: List[List[Tuple[Tensor, Tensor]]]
    ) -> Tuple[Tensor, List[List[Tuple[Tensor, Tensor]]]]:
        output_states = torch.jit.annotate(List[List[Tuple[Tensor, Tensor]]], [])
        output = input
        i = 0
        for layer in self.layers:
            state = states[i]
            output, out_state = layer(output, state)
            if i < self.num_layers - 1:
                output = self.dropout(output)
            output_states += [out_state]
            i += 1
        return output, output_states


# dataclass config
@dataclass
class Config:
    width: int = 4
    depth: int = 2
    scale: float = 0.5
    activation: str = "relu"


def act(name: str, x: Tensor) -> Tensor:
    if name == "relu":
        return x.relu()
    elif name == "tanh":
        return x.tanh()
    raise ValueError(f"unknown activation {name}")


@case((torch.randn(2, 4), "relu"), (torch.randn(2, 4), "tanh"), (torch.randn(2, 4), "none"))
class Configured(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config(depth=3)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(self.config.depth)])

    def forward(self, x: Tensor, name: str) -> Tensor:
        c = Config(width=x.size(1), activation=name)
        for i, layer in enumerate(self.layers):
            x = act(c.activation, layer(x)) * self.config.scale
            if i >= c.depth:
                x = x + c.width
        return x


# enum dispatch
class Pool(enum.Enum):
    MEAN = "mean"
    MAX = "max"
    LAST = "last"


def pool(x: Tensor, kind: Pool, mask: Optional[Tensor] = None) -> Tensor:
    if mask is not None:
        x = x * mask.unsqueeze(-1)
    if kind == Pool.MEAN:
        return x.mean(1)
    elif kind == Pool.MAX:
        return x.max(dim=1)[0]
    else:
        return x[:, -1]


@case((torch.randn(2, 3, 4), None), (torch.randn(2, 3, 4), torch.ones(2, 3)))
class Pooled(nn.Module):
    kinds: List[Pool]

    def __init__(self):
        super().__init__()
        self.kinds = [Pool.MEAN, Pool.LAST]
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor, mask: Optional[Tensor]) -> Tuple[Tensor, List[str]]:
        found = torch.zeros(x.size(0), x.size(2))
        names: List[str] = []
        for k in self.kinds:
            found = found + pool(x * self.w, k, mask)
            names.append(k.value)
        for k in Pool:
            if k is not Pool.MAX:
                names.append(k.name)
        return found + pool(x, Pool.MAX), names


# tree of modules
class Block(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.inner = Block(depth - 1) if depth else None
        self.children_list = nn.ModuleList([Block(0)] if depth else [])

    def forward(self, x: Tensor) -> Tensor:
        x = self.lin(x).tanh()
        if self.inner is not None:
            x = x + self.inner(x)
        for m in self.children_list:
            x = m(x)
        return x


@case((torch.randn(2, 3),))
class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.root = Block(3)

    def forward(self, x):
        return self.root(x)


# roi helper / box scripts
@case((torch.rand(5, 4) * 10, (8, 6), 0.5), (torch.zeros(0, 4), (3, 3), 1.0))
def boxes_pipeline(boxes: Tensor, size: Tuple[int, int], min_size: float) -> Tuple[Tensor, Tensor, Tensor]:
    dim = boxes.dim()
    boxes_x = boxes[..., 0::2]
    boxes_y = boxes[..., 1::2]
    height, width = size
    if torch.jit.is_scripting():
        boxes_x = boxes_x.clamp(min=0, max=width)
        boxes_y = boxes_y.clamp(min=0, max=height)
    else:
        boxes_x = torch.clamp(boxes_x, 0, width)
        boxes_y = torch.clamp(boxes_y, 0, height)
    clipped = torch.stack((boxes_x, boxes_y), dim=dim)
    clipped = clipped.reshape(boxes.shape)
    ws, hs = clipped[:, 2] - clipped[:, 0], clipped[:, 3] - clipped[:, 1]
    keep = (ws >= min_size) & (hs >= min_size)
    keep = torch.where(keep)[0]
    cx, cy, w, h = clipped.unbind(-1)
    xyxy = torch.stack([cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h], dim=-1)
    return clipped, keep, xyxy


def _upcast(t: Tensor) -> Tensor:
    if t.is_floating_point():
        return t if t.dtype in (torch.float32, torch.float64) else t.float()
    else:
        return t if t.dtype in (torch.int32, torch.int64) else t.int()


@case((torch.rand(3, 4), torch.rand(2, 4)), (torch.ones(1, 4).half(), torch.ones(1, 4).half()))
def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    a1 = _upcast(boxes1)
    a2 = _upcast(boxes2)
    area1 = (a1[:, 2] - a1[:, 0]) * (a1[:, 3] - a1[:, 1])
    area2 = (a2[:, 2] - a2[:, 0]) * (a2[:, 3] - a2[:, 1])
    lt = torch.max(boxes1[:, None, :2], boxes2[:, :2])
    rb = torch.min(boxes1[:, None, 2:], boxes2[:, 2:])
    wh = _upcast(rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    return inter / (area1[:, None] + area2 - inter + 1e-6)
