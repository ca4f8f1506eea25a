"""Ops, methods and attributes of tensors, indexing, writing in place."""

from typing import Dict, List, Optional, Tuple


@case((torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)))
def operators(x, y):
    return x + y, x - y, x * y, x / (y + 1), x // (y + 1), x % (y + 1), x**2, -x, abs(x - 2)


@case(torch.arange(1.0, 4.0), differs="PyTorch has no int % Tensor")
def numbers_on_both_sides(x):
    return x + 1, 1 + x, x - 1, 1 - x, 2 * x, x * 2.5, x / 2, 6 / x, 2**x, x**2, 7 // x, 7 % x


@case((torch.tensor([1, 2, 3]), torch.tensor([3, 2, 1])))
def comparisons(x, y):
    return x < y, x <= y, x > y, x >= y, x == y, x != y, x > 1, x > 2, x == 2, x != 1


@case((torch.tensor([True, False]), torch.tensor([True, True])))
def logic(x, y):
    return x & y, x | y, x ^ y, ~x, x.logical_and(y), x.any(), x.all()


@case((torch.ones(2, 3), torch.ones(3, 2)))
def products(a, b):
    return a @ b, torch.matmul(a, b), a.mm(b), a.t(), a.T, a.mT


@case(torch.arange(6.0).reshape(2, 3))
def reductions(x):
    return (
        x.sum(),
        x.sum(0),
        x.sum(dim=1, keepdim=True),
        x.mean(),
        x.max(),
        x.max(1),
        x.argmax(),
        x.sum((0, 1)),
        x.prod(0),
    )


@case(torch.arange(6.0).reshape(2, 3))
def named_results(x):
    best = x.max(dim=1)
    values, indices = x.topk(2)
    return best.values, best.indices, values, indices, torch.sort(x, descending=True)[0]


@case(torch.arange(24.0).reshape(2, 3, 4))
def shapes(x):
    return x.shape[0], x.size(), x.size(1), x.size(-1), x.dim(), x.numel(), len(x), x.ndim, x.shape[1:], x.stride()


@case(torch.ones(2, dtype=torch.int32), differs="PyTorch gives a dtype as a number")
def facts(x):
    return x.dtype, x.device, x.is_floating_point(), x.requires_grad, x.is_cuda, x.dtype == torch.int32


@case(torch.arange(24.0).reshape(2, 3, 4))
def views(x):
    y = x.view(6, 4)
    return (
        y,
        x.view([4, 6]),
        x.reshape(-1),
        x.permute(2, 0, 1),
        x.transpose(0, 1),
        x.unsqueeze(0).squeeze(0),
        x.flatten(1),
    )


@case(torch.arange(24.0).reshape(2, 3, 4), differs="PyTorch takes no lone ...")
def basic_indexing(x):
    return x[0], x[0, 1], x[:, 1], x[..., 0], x[0, ..., -1], x[:, 1:], x[:, :2, 1::2], x[-1], x[None, 0], x[:], x[...]


@case((torch.arange(24.0).reshape(2, 3, 4), 1), (torch.arange(24.0).reshape(2, 3, 4), 0))
def indexing_by_values(x, i: int):
    return x[i], x[:, i], x[:, i : i + 2], x[:i], x[..., i:], x[i, i, i]


@case((torch.arange(12.0).reshape(3, 4), torch.tensor([0, 2]), torch.tensor([True, False, True])))
def indexing_by_tensors(x, rows, mask):
    return x[rows], x[mask], x[rows, rows], x[:, rows], x[x > 5], x[rows, 1:], x[rows][:, 0]


@case(torch.arange(12.0).reshape(3, 4))
def indexing_by_lists(x):
    return x[[0, 2]], x[:, [1, 0]]


@case(torch.zeros(3, 4))
def writing(x):
    x = x.clone()
    x[0] = 1
    x[1, 2] = 2.5
    x[:, 3] = torch.arange(3.0)
    x[2, :2] = -1
    x[..., 0] += 10
    x[1:] *= 2
    return x


@case((torch.zeros(4), torch.tensor([1, 3])))
def writing_by_tensors(x, where):
    y = x.clone()
    y[where] = 5.0
    y[y > 4] -= 1
    y[[0]] = 7.0
    return y, x


@case(torch.ones(3))
def in_place_methods(x):
    x.add_(1)
    x.mul_(2).sub_(1)
    y = x
    y += 1
    x.clamp_(max=3.5)
    return x, y


@case(torch.zeros(2, 2))
def aliases(x):
    row = x[0]
    row += 1
    column = x[:, 1]
    column.fill_(5)
    return x, row, column


@case((torch.ones(2), 3))
def in_place_in_a_loop(x, n: int):
    for i in range(n):
        x += i
        if i == 1:
            x *= 2
    return x


@case(3)
def factories(n: int):
    return (
        torch.zeros(n),
        torch.ones(2, n),
        torch.full((n,), 7.0),
        torch.arange(n),
        torch.arange(1, n, dtype=torch.float32),
        torch.eye(n),
        torch.zeros([n, 2], dtype=torch.int64),
        torch.linspace(0, 1, n),
    )


@case((3, 2.5))
def tensors_from_values(n: int, x: float):
    return torch.tensor(n), torch.tensor([x, 1.0]), torch.tensor([[n, 1], [2, 3]]), torch.tensor([True])


@case((torch.ones(2), torch.zeros(2)))
def joining(x, y):
    parts = [x, y]
    parts.append(x + y)
    return torch.cat(parts), torch.stack([x, y]), torch.stack(parts, dim=1), torch.cat((x, y), 0)


@case(torch.arange(7.0))
def splitting(x):
    a, b = x.split([3, 4])
    return a, b, x.chunk(2)[1], torch.split(x, 3)[2], x[:6].view(3, 2).unbind(1)[0]


@case(torch.arange(4.0).reshape(2, 2), differs="PyTorch unpacks no tensors")
def unpacking(x):
    a, b = x
    (c, d), e = a, b
    return a, b, c + d, e


@case(torch.tensor([-1.0, 0.5, 2.0]))
def activations(x):
    return torch.relu(x), x.sigmoid(), torch.tanh(x), torch.nn.functional.gelu(x), torch.nn.functional.softmax(x, dim=0)


@case((torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)))
def functional(x, w, b):
    return torch.nn.functional.linear(x, w, b), torch.nn.functional.linear(x, w), torch.nn.functional.layer_norm(x, [3])


@case((torch.ones(2), torch.tensor([1.0, 0.0])), (torch.ones(2), None))
def optional_tensor(x, mask: Optional[torch.Tensor] = None):
    if mask is not None:
        x = x * mask
    return x


@case(torch.ones(2))
def dtypes(x):
    return x.to(torch.float64), x.int(), x.long(), x.to(dtype=torch.int32), x.double().to(x.dtype), x.to("cpu")


@case(torch.ones(2))
def likes(x):
    return torch.zeros_like(x), x.new_zeros(3), x.new_zeros([2, 2]), torch.ones_like(x, dtype=torch.int64)


@case((torch.tensor([3.0, 1.0, 2.0]), 2))
def keyword_arguments(x, k: int):
    return torch.sum(x, dim=0), torch.add(x, x, alpha=2), x.topk(k, largest=False).values, torch.sub(x, 1, alpha=3)


@case(torch.arange(4.0))
def tolist(x):
    out: List[float] = x.tolist()
    return out


@case(torch.tensor([1, 2, 2]), differs="PyTorch has no 'in' for tensors")
def in_a_tensor(x):
    return 2 in x, 5 in x


@case((torch.ones(2, 2), [2, 2]))
def sizes_as_lists(x, size: List[int]):
    return x.expand(size), torch.zeros(size), x.reshape(size + [1]), x.view(size[0] * size[1])


@case(torch.ones(3, 2))
def sizes_in_arithmetic(x):
    n, m = x.shape[0], x.size(1)
    return torch.zeros(n * m + 1), x.reshape(m, n), x.sum() / n


@case(torch.ones(2))
def tuple_results(x) -> Tuple[torch.Tensor, int]:
    return x + 1, 3


@case(torch.tensor(2.0))
def scalar_tensors(x):
    y = x.item()
    return float(y) * 2, torch.full([2], float(x))


@case((torch.ones(2, 3), torch.ones(3)))
def einsum(x, y):
    return torch.einsum("ij,j->i", x, y)


@case((torch.tensor([1.0, -1.0]), torch.zeros(2)))
def where(x, y):
    return torch.where(x > 0, x, y), x.masked_fill(x < 0, 0.0), x.clamp(min=0), torch.maximum(x, y)


@case(
    (torch.tensor([[1.0, 2.0], [3.0, 0.5]]), torch.zeros(2), torch.zeros(2, dtype=torch.int64)),
    differs="its script takes no out= of several tensors",
)
def results_go_into_out(x, values, places):
    buffer = torch.empty(0)
    torch.mul(x, 3, out=buffer)
    both = torch.max(x, 0, out=(values, places))
    total = torch.add(buffer, 1.0, out=buffer)
    total += 1
    return buffer, both[0], both[1]


@case(
    (torch.tensor([1.0]), torch.zeros(1, dtype=torch.int64)),
    (torch.ones(1, requires_grad=True), torch.zeros(1)),
    differs="it takes out= where a gradient is asked for",
)
def out_that_cannot_be_written(x, out):
    return torch.add(x, 1.0, out=out)


@case(
    (torch.arange(3.0), torch.ones(2, 3, 4), 1),
    (torch.arange(4.0), torch.ones(2, 3, 4), 2),
    (torch.ones(1), torch.ones(1), 0),
)
def sizes_that_repeat(x, like, dim: int):
    size = (1,) * dim + (-1,) + (1,) * (like.dim() - dim - 1)
    return x.view(size).expand_as(like)


@case((torch.ones(2), 3), differs="its script does not run type()")
def types_in_texts(x, n: int):
    same = type(x) == type(x + 1)
    if n > 5:
        raise TypeError(f"got {type(x)}")
    return same, type(n) == type(x), f"{type(n)}", str(type([n])), x.type()


@case(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), differs="it warns of torch.lu")
def lu_factors(x):
    factors, pivots = torch.lu(x)
    p, l, u = torch.lu_unpack(factors, pivots)
    return pivots, p @ l @ u


@case(torch.ones(2, 3))
def questions(x):
    return x.is_conj(), x.conj().is_conj(), x.is_neg(), x.is_inference()


@case(
    (torch.tensor([[1, 3], [3, 2], [3, 2]]), None),
    (torch.tensor([[1, 3], [3, 2]]), 0),
    differs="no method unique there",
)
def unique_elements(x, dim: Optional[int]):
    a = torch.unique(x)
    b, c = torch.unique(a, return_counts=True, dim=dim)
    d, e, f = x.unique(True, True, True)
    g, h = x.unique_consecutive(True, dim=dim)
    return a, b, c, d, e, f, torch.unique_consecutive(x, dim=dim) + 1, g, h
