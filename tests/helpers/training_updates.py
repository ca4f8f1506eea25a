"""Training programs: kinds of updates of parameters, gradients and statistics."""

from training import batches, perceptron, program

import tinygrad_ext as tg
from tinygrad_ext import nn

F = nn.functional


@program
def descent_by_hand_through_data():
    model = perceptron(3, 4, 1)

    def step(x, y):
        loss = F.mse_loss(model(x), y)
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad.data, alpha=-0.1)
        return loss.detach()

    return step, [model], batches((4, 3), (4, 1))


@program
def descent_by_hand_without_gradients():
    w, b = tg.randn(3, 1, requires_grad=True), tg.zeros(1, requires_grad=True)

    def step(x, y):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        with tg.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
                p.grad.zero_()
        return loss.detach()

    return step, [w, b], batches((4, 3), (4, 1))


@program
def descent_by_hand_with_detach():
    model = perceptron(3, 4, 1)
    speeds = [tg.zeros_like(p) for p in model.parameters()]

    def step(x, y):
        loss = F.mse_loss(model(x), y)
        grads = tg.autograd.grad(loss, list(model.parameters()))
        for p, v, g in zip(model.parameters(), speeds, grads):
            v.mul_(0.9).add_(g)
            p.detach().sub_(0.1 * v)
        return loss.detach()

    return step, [model, *speeds], batches((4, 3), (4, 1))


@program
def data_set_to_new_tensors():
    w = nn.Parameter(tg.randn(3))

    def step(x):
        loss = (x * w).sum().pow(2)
        (g,) = tg.autograd.grad(loss, w)
        w.data = w.data - 0.01 * g
        return loss.detach()

    return step, [w], batches((3,))


@program
def decay_by_hand_before_the_step():
    model = perceptron(3, 4, 1)
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optim.zero_grad()
        F.mse_loss(model(x), y).backward()
        for group in optim.param_groups:
            for p in group["params"]:
                p.data.mul_(1 - 0.01)
        optim.step()

    return step, [model], batches((4, 3), (4, 1))


@program
def penalty_of_squared_weights():
    model = perceptron(3, 4, 1)
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        loss = F.mse_loss(model(x), y)
        loss = loss + 0.01 * sum(p.pow(2).sum() for p in model.parameters())
        loss = loss + 0.001 * sum(p.abs().sum() for name, p in model.named_parameters() if "weight" in name)
        optim.zero_grad()
        loss.backward()
        optim.step()
        return 0.5, loss.detach()

    return step, [model], batches((4, 3), (4, 1))


@program
def moving_average_of_the_weights():
    model, shadow = perceptron(3, 4, 1), perceptron(3, 4, 1)
    shadow.load_state_dict(model.state_dict())
    optim = tg.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        loss = F.mse_loss(model(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
        with tg.no_grad():
            for slow, p in zip(shadow.parameters(), model.parameters()):
                slow.mul_(0.99).add_(p, alpha=0.01)
        return loss.detach()

    return step, [model, shadow, optim], batches((4, 3), (4, 1))


@program
def momentum_contrast_by_lerp():
    online, target = nn.Linear(3, 2), nn.Linear(3, 2)
    for p in target.parameters():
        p.requires_grad = False
    optim = tg.optim.SGD(online.parameters(), lr=0.1)
    queue, place = tg.randn(4, 2), tg.zeros((), dtype=tg.int64)

    def step(x, other):
        for a, b in zip(target.parameters(), online.parameters()):
            a.data.lerp_(b.data, 0.1)
        q, k = F.normalize(online(x), dim=-1), F.normalize(target(other), dim=-1)
        logits = tg.cat([(q * k).sum(-1, keepdim=True), q @ queue.clone().t()], 1)
        loss = F.cross_entropy(logits / 0.2, tg.zeros(x.shape[0], dtype=tg.int64))
        optim.zero_grad()
        loss.backward()
        optim.step()
        with tg.no_grad():
            queue.index_copy_(0, (tg.arange(x.shape[0]) + place) % 4, k)
            place.add_(x.shape[0]).remainder_(4)
        return loss.detach()

    return step, [online, target, queue, place], batches((2, 3), (2, 3))


@program
def accumulation_over_small_batches():
    model = perceptron(3, 4, 1)
    optim = tg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x, y):
        optim.zero_grad()
        total = 0.0
        for a, b in zip(x.split(2), y.split(2)):
            loss = F.mse_loss(model(a), b) / 3
            loss.backward()
            total += loss.detach()
        optim.step()
        return total

    return step, [model, optim], batches((6, 3), (6, 1))


@program
def accumulation_without_a_step():
    model = perceptron(3, 4, 1)

    def step(x, y):
        (F.mse_loss(model(x), y) / 4).backward()

    return step, [model], batches((6, 3), (6, 1))


@program
def clipped_by_norm_by_hand():
    model = perceptron(3, 4, 1)
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optim.zero_grad()
        F.mse_loss(model(x), y).backward()
        norm = tg.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters()))
        scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
        for p in model.parameters():
            p.grad.mul_(scale)
        optim.step()
        return norm

    return step, [model], batches((4, 3), (4, 1))


@program
def noise_on_gradients():
    model = perceptron(3, 4, 1)
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optim.zero_grad()
        F.mse_loss(model(x), y).backward()
        for p in model.parameters():
            p.grad += 0.01 * tg.randn_like(p.grad)
            p.grad = p.grad.clamp(-0.5, 0.5)
        optim.step()

    return step, [model], batches((4, 3), (4, 1))


@program
def robust_loss():
    model = perceptron(3, 4, 1)
    optim = tg.optim.Adam(model.parameters(), lr=0.1)

    def step(x, y):
        optim.zero_grad()
        loss = F.huber_loss(model(x), y)
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [model, optim], batches((4, 3), (4, 1))


@program
def augmented_with_random_numbers():
    model = perceptron(6, 4, 2)
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, target):
        x = x + 0.1 * tg.randn_like(x)
        x = tg.where(tg.rand(x.shape[0], 1) < 0.5, x.flip(1), x)
        x = x * tg.bernoulli(tg.full_like(x, 0.9)) * tg.empty_like(x).uniform_(0.8, 1.2)
        order = tg.randperm(x.shape[0])
        part = tg.rand(())
        x = part * x + (1 - part) * x[order]
        optim.zero_grad()
        out = model(x)
        loss = part * F.cross_entropy(out, target) + (1 - part) * F.cross_entropy(out, target[order])
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [model], [(tg.randn(4, 6), tg.randint(0, 2, (4,))) for _ in range(4)]


@program
def parameters_frozen_in_the_step():
    first, second = nn.Linear(3, 4), nn.Linear(4, 1)
    optim = tg.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)

    def step(x, y):
        optim.zero_grad()
        for p in first.parameters():
            p.requires_grad_(False)
        F.mse_loss(second(first(x).tanh()), y).backward()
        for p in first.parameters():
            p.requires_grad_(True)
        F.l1_loss(second(first(x)), y).backward()
        optim.step()

    return step, [first, second], batches((4, 3), (4, 1))


@program
def evaluation_inside_of_the_step():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        model.train()
        optim.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optim.step()
        model.eval()
        with tg.no_grad():
            checked = F.mse_loss(model(x), y)
        model.train()
        return loss.detach(), checked

    return step, [model], batches((4, 3), (4, 1))


@program
def closure_as_quasi_newton_methods_want_it():
    w = tg.randn(3, requires_grad=True)
    optim = tg.optim.SGD([w], lr=0.05)

    def step(x, y):
        def closure():
            optim.zero_grad()
            loss = (x @ w - y).pow(2).mean()
            loss.backward()
            return loss

        return optim.step(closure).detach()

    return step, [w], batches((4, 3), (4,))


@program
def backward_hooks_on_parameters():
    model = perceptron(3, 4, 1)
    for p in model.parameters():
        p.register_hook(lambda grad: grad.clamp(-0.05, 0.05))
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optim.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [model], batches((4, 3), (4, 1))


@program
def statistics_kept_by_hand():
    mean, var, count = tg.zeros(3), tg.ones(3), tg.zeros(())
    model = nn.Linear(3, 1)
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        with tg.no_grad():
            count.add_(1)
            mean.add_((x.mean(0) - mean) / count)
            var.copy_(0.9 * var + 0.1 * x.var(0, unbiased=False))
        loss = F.mse_loss(model((x - mean) / (var + 1e-5).sqrt()), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [model, mean, var, count], batches((4, 3), (4, 1))


@program
def normalised_weights_and_codes_updated_in_place():
    codes = nn.Embedding(5, 2)
    encoder = nn.Linear(3, 2)
    optim = tg.optim.Adam([*encoder.parameters(), *codes.parameters()], lr=0.01)

    def step(x):
        z = encoder(x)
        nearest = (z[:, None] - codes.weight).norm(dim=-1).argmin(1)
        q = codes(nearest)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        through = z + (q - z).detach()
        loss = loss + through.pow(2).mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        with tg.no_grad():
            codes.weight.div_(codes.weight.norm(dim=1, keepdim=True))
        return loss.detach(), nearest

    return step, [codes, encoder, optim], batches((4, 3))
