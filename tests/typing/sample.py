"""A user's program, for the type checker only: models, a training loop, indexing, autograd, saving."""

from collections.abc import Iterator

import tinygrad_ext as torch
import tinygrad_ext.nn.functional as F
from tinygrad_ext import Tensor, nn, optim
from tinygrad_ext.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.first = nn.Linear(8, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.last = nn.Linear(hidden, 2, bias=False)
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm(self.first(x)))
        out: Tensor = self.last(h) * self.scale
        return out.softmax(-1)


def batches(x: Tensor, y: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    for start in range(0, len(x), size):
        yield x[start : start + size], y[start : start + size]


def train(model: nn.Module, x: Tensor, y: Tensor, epochs: int = 3) -> list[float]:
    opt = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(epochs):
        model.train()
        total = 0.0
        for xb, yb in batches(x, y, 4):
            opt.zero_grad()
            loss = F.mse_loss(model(xb), yb)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item()
        losses.append(total)
    return losses


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    hits = (model(x).argmax(1) == y).float().mean()
    return float(hits.item())


def indexing(t: Tensor) -> Tensor:
    row = t[0]
    t[1, ::2] = 0
    t[t > 1] = row.sum()
    picked = t[..., None, torch.tensor([0, 1])]
    return torch.cat([picked.flatten(), row.reshape(-1)], dim=0)


def autograd() -> tuple[Tensor, ...]:
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    y = (x.exp() * 2 + 1 / (x**2 + 1) - x.t().t()).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (g * g).sum().backward()
    assert x.grad is not None
    with torch.no_grad():
        x -= 0.1 * x.grad
    values, indices = x.max(dim=1)
    best = x.max(1)
    print(best.values.shape, indices.dtype, x.shape[0] + x.size(1), len(x.size()))
    return torch.autograd.grad([values.sum()], [x], allow_unused=True)


def save_and_load(model: Net, path: str) -> None:
    torch.save(model.state_dict(), path)
    model.load_state_dict(torch.load(path))
    model.to(torch.float64).requires_grad_(False)


def main() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(Net(), nn.ReLU(), nn.Linear(2, 1))
    x, y = torch.rand(16, 8), torch.zeros(16, 1)
    for name, p in net.named_parameters():
        print(name, tuple(p.shape), p.device)
    loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    for xb, _ in loader:
        net(xb)
    print(train(net, x, y), accuracy(net, x, y.long()), indexing(x), autograd())
    save_and_load(Net(), "net.safetensors")


if __name__ == "__main__":
    main()
