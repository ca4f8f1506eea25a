"""Programs as users write them: caches, running statistics, routed experts, graphs of nodes, parsing."""

import math, enum
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple, NamedTuple, Union, Any, Final
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


# incremental transformer decoder with cache
class Attn(nn.Module):
    def __init__(self, d: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(d, d)
        self.kv = nn.Linear(d, 2 * d)
        self.out = nn.Linear(d, d)
        self.scale = (d // heads) ** -0.5

    def shape(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        return x.view(b, n, self.heads, d // self.heads).transpose(1, 2)

    def forward(
        self, x: Tensor, cache: Optional[Dict[str, Tensor]] = None, mask: Optional[Tensor] = None
    ) -> Tuple[Tensor, Dict[str, Tensor]]:
        q = self.shape(self.q(x))
        k, v = self.kv(x).chunk(2, dim=-1)
        k, v = self.shape(k), self.shape(v)
        if cache is not None and "k" in cache:
            k = torch.cat([cache["k"], k], dim=2)
            v = torch.cat([cache["v"], v], dim=2)
        w = (q @ k.transpose(-2, -1)) * self.scale
        if mask is not None:
            w = w.masked_fill(mask == 0, float("-inf"))
        y = F.softmax(w, dim=-1) @ v
        b, h, n, e = y.shape
        return self.out(y.transpose(1, 2).reshape(b, n, h * e)), {"k": k, "v": v}


@case((torch.randn(2, 3, 4), 2), (torch.randn(1, 1, 4), 4))
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attn(4, 2), Attn(4, 2)])
        self.norm = nn.LayerNorm(4)
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)))

    def step(
        self, x: Tensor, caches: List[Optional[Dict[str, Tensor]]]
    ) -> Tuple[Tensor, List[Optional[Dict[str, Tensor]]]]:
        made: List[Optional[Dict[str, Tensor]]] = []
        n = x.size(1)
        for i, layer in enumerate(self.layers):
            y, c = layer(self.norm(x), caches[i], self.mask[:n, :n] if caches[i] is None else None)
            x = x + y
            made.append(c)
        return x, made

    def forward(self, x: Tensor, steps: int) -> Tensor:
        caches: List[Optional[Dict[str, Tensor]]] = [None, None]
        x, caches = self.step(x, caches)
        outs = [x]
        for _ in range(steps):
            x, caches = self.step(x[:, -1:], caches)
            outs.append(x)
        return torch.cat(outs, 1)


# running normaliser with buffers
@case(torch.randn(4, 3), torch.randn(4, 3) * 10)
class RunningNorm(nn.Module):
    mean: Tensor
    count: Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("m2", torch.ones(3))
        self.register_buffer("count", torch.tensor(0))
        self.clip: Optional[float] = 5.0

    @torch.jit.export
    def reset(self):
        self.mean.zero_()
        self.count = torch.tensor(0)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            with torch.no_grad():
                for row in x:
                    self.count += 1
                    delta = row - self.mean
                    self.mean = self.mean + delta / self.count
                    self.m2 = self.m2 + delta * (row - self.mean)
        y = (x - self.mean) / (self.m2 / self.count.clamp(min=1)).sqrt()
        clip = self.clip
        if clip is not None:
            y = y.clamp(-clip, clip)
        return y


# CRF viterbi
@case((torch.randn(4, 3), torch.randn(3, 3)))
def viterbi(emissions: Tensor, transitions: Tensor) -> Tuple[List[int], float]:
    score = emissions[0]
    back: List[Tensor] = []
    for t in range(1, emissions.size(0)):
        total = score.unsqueeze(1) + transitions + emissions[t].unsqueeze(0)
        score, idx = total.max(0)
        back.append(idx)
    best_score, best = score.max(0)
    path: List[int] = [int(best)]
    for i in range(len(back) - 1, -1, -1):
        path.append(int(back[i][path[-1]]))
    path.reverse()
    return path, float(best_score)


# CTC greedy collapse
@case((torch.randn(6, 4), ["_", "a", "b", "c"]))
def ctc(logits: Tensor, labels: List[str]) -> str:
    out: List[str] = []
    last = -1
    ids: List[int] = logits.argmax(-1).tolist()
    for i in ids:
        if i != last and i != 0:
            out.append(labels[i])
        last = i
    return "".join(out)


# edit distance
@case(("kitten", "sitting"), ("", "abc"))
def edit_distance(a: str, b: str) -> int:
    row = [i for i in range(len(b) + 1)]
    for i, ca in enumerate(a):
        new = [i + 1]
        for j, cb in enumerate(b):
            cost = 0 if ca == cb else 1
            new.append(min(row[j + 1] + 1, new[j] + 1, row[j] + cost))
        row = new
    return row[-1]


# mixture of experts with top-k routing
@torch.jit.interface
class ExpertI(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


@case(torch.randn(5, 4))
class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(3)])
        self.load: List[int] = [0, 0, 0]

    def forward(self, x: Tensor) -> Tensor:
        w, idx = F.softmax(self.gate(x), -1).topk(2, dim=-1)
        w = w / w.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows, slot = torch.where(idx == e)
            if rows.numel() > 0:
                self.load[e] += rows.numel()
                out = out.index_add(0, rows, expert(x[rows]) * w[rows, slot].unsqueeze(-1))
        return out


# graph neural net with dict of edges (heterogeneous)
@case(({"u": torch.randn(3, 4), "v": torch.randn(2, 4)}, {("u__v"): t([[0, 1, 2], [0, 1, 1]])}))
class Hetero(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.ModuleDict({"u__v": nn.Linear(4, 4), "v__u": nn.Linear(4, 4)})

    def forward(self, x: Dict[str, Tensor], edges: Dict[str, Tensor]) -> Dict[str, Tensor]:
        out: Dict[str, Tensor] = {}
        for k, v in x.items():
            out[k] = v.clone()
        for name, lin in self.lin.items():
            if name in edges:
                src, dst = name.split("__")
                e = edges[name]
                msg = lin(x[src])[e[0]]
                out[dst] = out[dst].index_add(0, e[1], msg)
        return out


# ODE adaptive
@case((t([1.0]), 1.0), (t([2.0, 3.0]), 0.3))
def adaptive(y: Tensor, end: float) -> Tuple[Tensor, int]:
    time, step, count = 0.0, 0.1, 0
    while time < end and count < 100:
        step = min(step, end - time)
        k1 = -y * y
        k2 = -((y + step * k1) ** 2)
        error = float((step * (k2 - k1) / 2).abs().max())
        if error < 1e-2:
            y = y + step * (k1 + k2) / 2
            time += step
            step *= 1.5
        else:
            step /= 2
        count += 1
    return y, count


# replay buffer class as attribute, ring
class Ring:
    def __init__(self, size: int):
        self.items: List[Tensor] = []
        self.at = 0
        self.size = size

    def push(self, x: Tensor) -> None:
        if len(self.items) < self.size:
            self.items.append(x)
        else:
            self.items[self.at] = x
        self.at = (self.at + 1) % self.size

    def mean(self) -> Tensor:
        return torch.stack(self.items).mean(0)

    def __len__(self) -> int:
        return len(self.items)


@case(torch.randn(3, 2), torch.randn(3, 2))
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.ring = Ring(2)
        self.lin = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        for row in x:
            self.ring.push(row.detach())
        return self.lin(x) - self.ring.mean(), len(self.ring)


# union/any parsing
@case((3,), ("4",), ([1, 2],), (t([5.0]),))
def to_number(x: Union[int, str, List[int], Tensor]) -> float:
    if isinstance(x, int):
        return float(x)
    elif isinstance(x, str):
        return float(x)
    elif isinstance(x, Tensor):
        return float(x.sum())
    else:
        return float(sum(x))


# UNet like skip
@case(torch.randn(1, 2, 8, 8))
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)])
        self.up = nn.ModuleList([nn.Conv2d(12, 4, 3, padding=1), nn.Conv2d(6, 2, 3, padding=1)])
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        skips = []
        for d in self.down:
            skips.append(x)
            x = self.pool(F.relu(d(x)))
        x = x.repeat_interleave(2, dim=-1).repeat_interleave(2, dim=-2)
        for i, u in enumerate(self.up):
            skip = skips[len(skips) - 1 - i]
            if x.shape[-1] != skip.shape[-1]:
                x = x.repeat_interleave(2, dim=-1).repeat_interleave(2, dim=-2)
            if i == 0:
                x = torch.cat([x, F.relu(self.down[0](skips[0]))[:, :, ::2, ::2]], 1) if x.size(1) == 8 else x
            else:
                x = torch.cat([x, skip], 1)
            x = u(x)
        return x


# early exit decoder
class ExitDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)])
        self.exits = nn.ModuleList([nn.Linear(4, 3) for _ in range(4)])
        self.threshold = 0.5

    def forward(self, x: Tensor, force: Optional[int] = None) -> Tuple[Tensor, int]:
        for i, (block, head) in enumerate(zip(self.blocks, self.exits)):
            x = block(x)
            logits = head(x)
            if force is not None:
                if i == force:
                    return logits, i
            else:
                conf = F.softmax(logits, -1).max(-1)[0].min()
                if bool(conf > self.threshold):
                    return logits, i
        return self.exits[-1](x), -1


CASES.append(
    ("ExitDecoder", ExitDecoder, ((torch.randn(1, 4),), (torch.randn(1, 4), 1), (torch.randn(3, 4) * 5, None)))
)
