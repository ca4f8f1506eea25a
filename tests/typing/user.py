"""A program as users write them, with annotations: it passes mypy and pyright as it is, and it runs.

Training, Functions, datasets, modules, plugins, overrides; tests/test_stubs.py checks and runs it.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import tinygrad_ext as torch
import tinygrad_ext.nn.functional as F
from tinygrad_ext import Tensor, hookimpl, nn, optim
from tinygrad_ext.autograd import Function, gradcheck
from tinygrad_ext.autograd.function import FunctionCtx, once_differentiable
from tinygrad_ext.optim.lr_scheduler import CosineAnnealingLR, StepLR
from tinygrad_ext.overrides import TorchFunctionMode
from tinygrad_ext.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, random_split

# ---- ops -----------------------------------------------------------------------------------------------------------


def products(x: Tensor, y: Tensor) -> Tensor:
    both = torch.einsum("ij,jk->ik", x, y)
    traced = torch.einsum("ii", [both])
    rows, columns = torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")
    a, b = torch.broadcast_tensors(rows, columns[0])
    assert a.shape == b.shape == (3, 4)
    total: Tensor = both @ both.mT + traced - (rows + columns).sum()
    return total.clamp(min=-1e6).to(torch.float32)


def picking(x: Tensor) -> dict[str, Tensor]:
    values, places = x.max(dim=1)
    top = torch.topk(x, k=2, dim=-1)
    best = x.sort(descending=True)
    mask = (x > 0) & ~torch.isnan(x)
    return {
        "values": values,
        "places": places + top.indices[:, 0],
        "sorted": best.values,
        "masked": x[mask],
        "where": torch.where(mask, x, torch.zeros_like(x)),
        "stacked": torch.stack([x, x.neg()], dim=0).permute(1, 0, 2).reshape(-1, 2),
        "joined": torch.cat((x, x.flip(0))),
        "reduced": x.sum(dim=(0, 1)) + x.mean() + x.std(unbiased=False) + x.norm(),
    }


def shapes(x: Tensor) -> list[int]:
    rows, columns = x.shape
    halves = x.split(1, dim=0) + x.chunk(2)
    return [rows, columns, x.size(0), x.dim(), x.numel(), len(halves), *x.view(-1, 1).size(), *x.unsqueeze(0).shape]


def numbers(x: Tensor) -> float:
    items: list[Any] = x.tolist()
    torch.TypedStorage([1.0, 2.0], dtype=torch.float64).copy_(torch.TypedStorage(2, dtype=torch.float64))
    torch.UntypedStorage([1, 2]).copy_(torch.UntypedStorage(b"ab", device="cpu:0"))
    return float(x.sum()) + x.mean().item() + len(items) + math.sqrt(abs(int(x.numel())))


# ---- Functions -----------------------------------------------------------------------------------------------------


class Cube(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad * ctx.scale, None


class SplitSign(Function):
    @staticmethod
    def forward(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.relu(), (-x).relu()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, up: Tensor | None, down: Tensor | None) -> Tensor | None:
        x: Tensor = ctx.saved_tensors[0]
        if up is None or down is None or not ctx.needs_input_grad[0]:
            return None
        return up * (x > 0) - down * (x < 0)


def cube(x: Tensor, scale: float = 1.0) -> Tensor:
    out: Tensor = Cube.apply(x, scale)
    return out


def derivatives() -> Tensor:
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(cube, (x,))
    up, down = SplitSign.apply(x)
    (sign,) = torch.autograd.grad((up - down).sum(), [x])
    (slope,) = torch.autograd.grad((cube(x, 2.0) * sign).sum(), x, create_graph=True)
    seen: list[Tensor] = []
    handle = x.register_hook(seen.append)
    slope.pow(2).sum().backward()
    handle.remove()
    assert x.grad is not None and len(seen) == 1
    with torch.no_grad():
        x -= 0.1 * x.grad
    return x.detach()


# ---- data ----------------------------------------------------------------------------------------------------------


class Circle(Dataset[tuple[Tensor, Tensor]]):
    """Points, and whether they lie in a circle."""

    def __init__(self, count: int, radius: float = 0.7) -> None:
        self.points = torch.rand(count, 2) * 2 - 1
        self.radius = radius

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        point = self.points[index]
        return point, (point.norm() < self.radius).long()


class Counting(IterableDataset[int]):
    def __init__(self, end: int) -> None:
        self.end = end

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.end))


class Batch(NamedTuple):
    x: Tensor
    y: Tensor


def collate(rows: Sequence[tuple[Tensor, Tensor]]) -> Batch:
    return Batch(torch.stack([x for x, _ in rows]), torch.stack([y for _, y in rows]))


def loaders(count: int) -> tuple[DataLoader[tuple[Tensor, Tensor]], Subset[tuple[Tensor, Tensor]]]:
    data = Circle(count)
    point, label = data[0]
    assert point.shape == (2,) and label.dtype is torch.int64
    train, held_out = random_split(data, [0.75, 0.25], generator=torch.Generator().manual_seed(0))
    assert sum(batch.sum().item() for batch in DataLoader(Counting(6), batch_size=2)) == 15
    pairs = TensorDataset(torch.zeros(4, 2), torch.ones(4))
    assert [x.shape for x, _ in DataLoader(pairs, batch_size=4)] == [(4, 2)]
    return DataLoader(train, batch_size=16, shuffle=True, collate_fn=collate), held_out


# ---- modules -------------------------------------------------------------------------------------------------------


@dataclass
class Config:
    hidden: int = 16
    depth: int = 2
    dropout: float = 0.0
    act: Callable[[Tensor], Tensor] = torch.tanh


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.linear = nn.Linear(config.hidden, config.hidden)
        self.norm = nn.LayerNorm(config.hidden)
        self.drop = nn.Dropout(config.dropout)
        self.act = config.act
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        change: Tensor = self.drop(self.act(self.linear(self.norm(x))))
        return x + change


class Net(nn.Module):
    steps: Tensor

    def __init__(self, config: Config | None = None) -> None:
        super().__init__()
        config = config or Config()
        self.embed = nn.Sequential(nn.Linear(2, config.hidden), nn.ReLU())
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.heads = nn.ModuleDict({"label": nn.Linear(config.hidden, 2, bias=False)})
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor, head: str = "label") -> Tensor:
        self.steps += 1
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.heads[head](x)
        return out * self.scale


def typed_attributes() -> None:
    layer = nn.Linear(3, 5)
    weight: nn.Parameter = layer.weight
    features: int = layer.in_features + layer.out_features
    assert weight.shape == (5, 3) and features == 8
    conv = nn.Conv2d(1, 4, kernel_size=3, padding="same")
    assert conv.weight.requires_grad and conv.out_channels == 4
    norm = nn.BatchNorm1d(5)
    running: Tensor = norm.running_mean
    assert running.sum().item() == 0 and norm.eps < 1
    assert nn.Embedding(10, 3).weight.size(0) == 10


# ---- training ------------------------------------------------------------------------------------------------------


def train(model: nn.Module, data: DataLoader[tuple[Tensor, Tensor]], epochs: int) -> list[float]:
    groups = [{"params": list(model.parameters()), "lr": 1e-2}]
    optimizer = optim.AdamW(groups, weight_decay=1e-4, betas=(0.9, 0.99))
    schedulers = [StepLR(optimizer, step_size=5), CosineAnnealingLR(optimizer, T_max=epochs)]
    losses: list[float] = []
    for _ in range(epochs):
        model.train()
        total = 0.0
        for x, y in data:
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            total += loss.item()
        for scheduler in schedulers:
            scheduler.step()
        losses.append(total / len(data))
    return losses


@torch.no_grad()
def accuracy(model: nn.Module, data: Subset[tuple[Tensor, Tensor]]) -> float:
    model.eval()
    hits = [int(model(x[None]).argmax(1).eq(y).item()) for x, y in (data[i] for i in range(len(data)))]
    return sum(hits) / len(hits)


def watched(model: nn.Module, x: Tensor) -> list[str]:
    names: list[str] = []

    def note(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        names.append(f"{type(module).__name__}{tuple(output.shape)}")

    handles = [child.register_forward_hook(note) for child in model.children() if isinstance(child, nn.Sequential)]
    with torch.inference_mode():
        model(x)
    for handle in handles:
        handle.remove()
    return names


def saved(model: Net) -> Net:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.safetensors"
        torch.save(model.state_dict(), path)
        again = Net()
        again.load_state_dict(torch.load(path), strict=True)
    return again.double().requires_grad_(False).eval()


# ---- overrides and plugins -----------------------------------------------------------------------------------------


class Names(TorchFunctionMode):
    """Notes the name of every call."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.names.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))


class Metres(Tensor):
    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


@hookimpl
def tgx_register_ops(register: Any) -> None:
    register("typed::double(Tensor self) -> Tensor", compose=lambda self: self + self)


@torch.library.custom_op("typed_user::shifted", mutates_args=())
def shifted(x: Tensor, by: float) -> Tensor:
    return x + by


def overrides() -> list[str]:
    with Names() as seen:
        torch.ones(2).add(1).sum()
    distance = Metres(torch.ones(2))
    assert isinstance(distance * 2, Metres) and shifted(torch.zeros(1), 2.0).item() == 2
    return seen.names


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    assert products(x, x.t()).shape == (3, 3) and len(picking(x)) == 8
    assert shapes(x)[:2] == [3, 4] and numbers(x) > 0 and derivatives().shape == (3,)
    typed_attributes()
    data, held_out = loaders(64)
    model = Net(Config(hidden=8, act=F.gelu))
    losses = train(model, data, epochs=3)
    assert losses[-1] < losses[0] and 0 <= accuracy(model, held_out) <= 1
    assert watched(model, torch.rand(5, 2)) == ["Sequential(5, 8)"]
    assert saved(Net()).scale.dtype is torch.float64 and overrides() == ["ones", "add", "sum"]


if __name__ == "__main__":
    main()
