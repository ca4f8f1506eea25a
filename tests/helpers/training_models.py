"""Training programs: kinds of models."""

from training import batches, program

import tinygrad_ext as tg
from tinygrad_ext import nn

F = nn.functional


@program
def classifier_with_dropout():
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
    optim = tg.optim.Adam(model.parameters(), lr=0.01)

    def step(x, target):
        optim.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, target)
        loss.backward()
        optim.step()
        return loss.detach(), (logits.argmax(1) == target).float().mean()

    return step, [model, optim], [(tg.randn(4 + i, 6), tg.randint(0, 3, (4 + i,))) for i in range(5)]


@program
def convolutions():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)
    )
    optim = tg.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x, target):
        optim.zero_grad(set_to_none=False)
        loss = F.nll_loss(F.log_softmax(model(x), dim=-1), target)
        loss.backward()
        optim.step()
        return loss

    return step, [model, optim], [(tg.randn(2, 1, 8, 8), tg.randint(0, 3, (2,))) for _ in range(4)]


class Cell(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.inner, self.outer = nn.Linear(size, 4 * hidden), nn.Linear(hidden, 4 * hidden, bias=False)
        self.hidden = hidden

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (self.inner(x) + self.outer(h)).chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return h, c


@program
def recurrent_cell_in_a_loop():
    cell, head = Cell(3, 4), nn.Linear(4, 1)
    params = [*cell.parameters(), *head.parameters()]
    optim = tg.optim.Adam(params, lr=0.01)

    def step(xs, y):
        state = xs.new_zeros(xs.shape[0], cell.hidden), xs.new_zeros(xs.shape[0], cell.hidden)
        outs = []
        for x in xs.unbind(1):
            state = cell(x, state)
            outs.append(head(state[0]))
        loss = F.mse_loss(tg.stack(outs, 1).squeeze(-1), y)
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 0.1)
        optim.step()
        return loss.detach()

    return step, [cell, head, optim], batches((2, 5, 3), (2, 5))


@program
def truncated_backpropagation():
    rnn, head = Cell(2, 3), nn.Linear(3, 1)
    optim = tg.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)
    hidden, memory = tg.zeros(2, 3), tg.zeros(2, 3)

    def step(xs, y):
        h, c, total = hidden.clone(), memory.clone(), 0.0
        for t in range(xs.size(0)):
            h, c = rnn(xs[t], (h, c))
            total = total + (head(h) - y[t]).pow(2).mean()
        optim.zero_grad()
        total.backward()
        optim.step()
        hidden.copy_(h.detach())
        memory.copy_(c.detach())
        return total.detach()

    return step, [rnn, head, hidden, memory], batches((3, 2, 2), (3, 2, 1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", tg.tril(tg.ones(16, 16)).bool())

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) * self.scale
        scores = scores.masked_fill(~self.mask[:length, :length], float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention, self.first, self.second = Attention(width, 2), nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


@program
def language_model_with_tied_weights():
    embed, body = nn.Embedding(7, 8), nn.Sequential(Block(8), Block(8))
    head = nn.Linear(8, 7, bias=False)
    head.weight = embed.weight
    model = nn.ModuleDict({"embed": embed, "body": body, "head": head})
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optim = tg.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=0.01)

    def step(tokens):
        logits = head(body(embed(tokens[:, :-1])))
        loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), tokens[:, 1:].reshape(-1))
        optim.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        return loss.detach()

    return step, [model, optim], [(tg.randint(0, 7, (2, 6)),) for _ in range(4)]


@program
def padded_sequences_with_a_mask():
    model = nn.Linear(4, 12)
    optim = tg.optim.Adam(model.parameters(), lr=0.01)

    def step(x, lengths):
        mask = tg.arange(x.size(1))[None, :] >= lengths[:, None]
        q, k, v = model(x).chunk(3, -1)
        scores = (q @ k.mT / 2.0).masked_fill(mask[:, None, :], -1e9)
        out = scores.softmax(-1) @ v
        loss = (out.masked_fill(mask.unsqueeze(-1), 0.0) ** 2).sum() / (~mask).sum()
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss

    return step, [model, optim], [(tg.randn(3, 5, 4), tg.randint(1, 6, (3,))) for _ in range(4)]


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.mean, self.spread = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2)
        self.decode = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 6))

    def forward(self, x):
        h = self.encode(x).tanh()
        mean, spread = self.mean(h), self.spread(h)
        z = mean + tg.randn_like(mean) * (0.5 * spread).exp()
        return self.decode(z), mean, spread


@program
def variational_autoencoder():
    model = VAE()
    optim = tg.optim.Adam(model.parameters(), lr=0.01)

    def step(x):
        optim.zero_grad()
        out, mean, spread = model(x)
        rebuilt = F.binary_cross_entropy_with_logits(out, x.sigmoid(), reduction="sum")
        divergence = -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum()
        loss = (rebuilt + divergence) / len(x)
        loss.backward()
        optim.step()
        return {"loss": loss.detach(), "parts": (rebuilt.detach(), divergence.detach())}

    return step, [model, optim], batches((3, 6))


@program
def adversarial_pair_with_two_optimizers():
    maker = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 3))
    judge = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    of_maker = tg.optim.Adam(maker.parameters(), lr=0.01, betas=(0.5, 0.999))
    of_judge = tg.optim.Adam(judge.parameters(), lr=0.01, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()

    def step(real):
        fake = maker(tg.randn(real.size(0), 2))
        of_judge.zero_grad()
        loss_real = criterion(judge(real), tg.ones(real.size(0), 1))
        loss_real.backward()
        loss_fake = criterion(judge(fake.detach()), tg.zeros(real.size(0), 1))
        loss_fake.backward()
        of_judge.step()
        of_maker.zero_grad()
        loss = criterion(judge(fake), tg.ones(real.size(0), 1))
        loss.backward()
        of_maker.step()
        return (loss_real + loss_fake).detach(), loss.detach()

    return step, [maker, judge, of_maker, of_judge], batches((4, 3))


@program
def critic_with_gradient_penalty():
    critic = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    optim = tg.optim.Adam(critic.parameters(), lr=0.01)

    def step(real, fake):
        mix = tg.rand(real.size(0), 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_(True)
        scores = critic(between)
        (grad,) = tg.autograd.grad(
            scores, between, grad_outputs=tg.ones_like(scores), create_graph=True, retain_graph=True
        )
        penalty = ((grad.norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + 10.0 * penalty
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss.detach(), penalty.detach()

    return step, [critic, optim], batches((4, 3), (4, 3))


@program
def residual_net_with_frozen_statistics():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.conv = nn.BatchNorm1d(4), nn.Conv1d(4, 4, 3, padding=1)
            self.gate = nn.Parameter(tg.zeros(1))

        def forward(self, x):
            return x + self.gate * self.conv(F.relu(self.norm(x)))

    model = nn.Sequential(*[Residual() for _ in range(2)])
    model[0].norm.eval()
    optim = tg.optim.SGD(model.parameters(), lr=0.1, nesterov=True, momentum=0.9)

    def step(x):
        optim.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optim.step()
        return loss.item()

    return step, [model, optim], batches((2, 4, 6))


@program
def modules_in_lists_and_a_learned_initial_state():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
            self.scales = nn.ParameterList([nn.Parameter(tg.ones(3)) for _ in range(3)])
            self.start = nn.Parameter(tg.zeros(1, 3))
            self.register_buffer("calls", tg.zeros((), dtype=tg.int64))

        def forward(self, x):
            self.calls += 1
            h = self.start.expand(x.shape[0], -1)
            for layer, scale in zip(self.layers, self.scales):
                h = (layer(h) + x).tanh() * scale
            return h

    net = Net()
    optim = tg.optim.AdamW(net.parameters(), lr=0.1)

    def step(x):
        loss = F.smooth_l1_loss(net(x), x)
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [net, optim], batches((2, 3))
