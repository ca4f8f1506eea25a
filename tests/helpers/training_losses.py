"""Training programs: kinds of losses, and ways to get at gradients."""

from training import batches, perceptron, program

import tinygrad_ext as tg
from tinygrad_ext import nn

F = nn.functional


@program
def several_losses_with_weights():
    body, first, second = perceptron(4, 6), nn.Linear(6, 1), nn.Linear(6, 3)
    optim = tg.optim.Adam([*body.parameters(), *first.parameters(), *second.parameters()], lr=0.01)
    weights = {"value": 0.5, "kind": 1.0}

    def step(x, y, kind):
        optim.zero_grad()
        h = body(x)
        losses = {"value": F.l1_loss(first(h).squeeze(1), y), "kind": F.cross_entropy(second(h), kind)}
        total = sum(weights[k] * v for k, v in losses.items())
        total.backward()
        optim.step()
        return {k: v.detach() for k, v in losses.items()}

    return step, [body, first, second], [(tg.randn(3, 4), tg.randn(3), tg.randint(0, 3, (3,))) for _ in range(4)]


@program
def losses_that_are_weighed_by_learned_spreads():
    model, spread = nn.Linear(3, 2), nn.Parameter(tg.zeros(2))
    optim = tg.optim.Adam([*model.parameters(), spread], lr=0.01)

    def step(x, y):
        errors = (model(x) - y).pow(2).mean(0)
        loss = (errors * (-spread).exp() + spread).sum()
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [model, spread], batches((4, 3), (4, 2))


@program
def contrastive():
    model = perceptron(5, 8, 4)
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(a, b):
        za, zb = F.normalize(model(a), dim=1), F.normalize(model(b), dim=1)
        z = tg.cat([za, zb])
        likeness = z @ z.t() / 0.5
        n = a.shape[0]
        likeness.diagonal().fill_(-1e9)
        target = tg.cat([tg.arange(n) + n, tg.arange(n)])
        loss = F.cross_entropy(likeness, target)
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [model, optim], batches((3, 5), (3, 5))


@program
def triplets_with_hard_negatives():
    model = perceptron(4, 5, 3)
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(anchor, other, pool):
        a, p, n = model(anchor), model(other), model(pool)
        with tg.no_grad():
            hardest = (a[:, None] - n).square().sum(-1).argmin(dim=1)
        loss = ((a - p).norm(dim=1) - (a - n[hardest]).norm(dim=1) + 0.5).clamp(min=0).mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [model], batches((3, 4), (3, 4), (6, 4))


@program
def policy_gradient():
    policy = perceptron(4, 8, 3)
    optim = tg.optim.Adam(policy.parameters(), lr=0.01)

    def step(states, rewards):
        logits = policy(states)
        logp = logits.log_softmax(-1)
        actions = tg.multinomial(logp.exp().detach(), 1)
        returns = rewards.flip(0).cumsum(0).flip(0)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        entropy = -(logp.exp() * logp).sum(-1).mean()
        loss = -(logp.gather(1, actions).squeeze(1) * returns).mean() - 0.01 * entropy
        optim.zero_grad()
        loss.backward()
        for p in policy.parameters():
            p.grad.clamp_(-1, 1)
        optim.step()
        return loss.detach(), actions

    return step, [policy, optim], batches((5, 4), (5,))


@program
def actor_and_critic_with_clipped_ratios():
    actor, critic = perceptron(3, 6, 2), perceptron(3, 6, 1)
    optim = tg.optim.Adam([*actor.parameters(), *critic.parameters()], lr=0.01)

    def step(states, actions, old, rewards):
        for _ in range(2):
            logp = actor(states).log_softmax(1).gather(1, actions[:, None])[:, 0]
            value = critic(states)[:, 0]
            advantage = (rewards - value).detach()
            ratio = (logp - old).exp()
            surrogate = tg.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
            loss = -surrogate.mean() + 0.5 * F.mse_loss(value, rewards)
            optim.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(actor.parameters(), 0.1)
            optim.step()
        return loss.detach()

    data = [(tg.randn(4, 3), tg.randint(0, 2, (4,)), -tg.rand(4), tg.randn(4)) for _ in range(4)]
    return step, [actor, critic, optim], data


@program
def deep_q_learning_with_a_target_network():
    online, target = perceptron(3, 6, 2), perceptron(3, 6, 2)
    target.load_state_dict(online.state_dict())
    optim = tg.optim.Adam(online.parameters(), lr=0.01)

    def step(states, actions, rewards, following, done):
        with tg.no_grad():
            best = rewards + 0.9 * target(following).max(1)[0] * (1 - done)
        chosen = online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(chosen, best)
        optim.zero_grad()
        loss.backward()
        optim.step()
        for old, new in zip(target.parameters(), online.parameters()):
            old.data.copy_(0.9 * old.data + 0.1 * new.data)
        return loss.detach()

    data = [
        (tg.randn(4, 3), tg.randint(0, 2, (4,)), tg.randn(4), tg.randn(4, 3), tg.randint(0, 2, (4,)).float())
        for _ in range(4)
    ]
    return step, [online, target, optim], data


@program
def teacher_and_student():
    teacher, student = perceptron(4, 8, 3), perceptron(4, 3)
    for p in teacher.parameters():
        p.requires_grad_(False)
    teacher.eval()
    optim = tg.optim.SGD(student.parameters(), lr=0.1)

    def step(x, target):
        with tg.no_grad():
            wanted = (teacher(x) / 2.0).softmax(-1)
        given = student(x)
        soft = F.kl_div((given / 2.0).log_softmax(-1), wanted, reduction="batchmean") * 4.0
        loss = 0.3 * F.cross_entropy(given, target, label_smoothing=0.1) + 0.7 * soft
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [teacher, student], [(tg.randn(4, 4), tg.randint(0, 3, (4,))) for _ in range(4)]


@program
def attack_by_the_sign_of_the_gradient():
    model = perceptron(3, 6, 2)
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, target):
        noise = tg.zeros_like(x, requires_grad=True)
        F.cross_entropy(model(x + noise), target).backward()
        worse = x + 0.1 * noise.grad.sign()
        optim.zero_grad()
        loss = F.cross_entropy(model(worse.detach()), target)
        loss.backward()
        optim.step()
        return loss.detach(), worse

    return step, [model], [(tg.randn(4, 3), tg.randint(0, 2, (4,))) for _ in range(4)]


@program
def physics_with_second_derivatives():
    net = perceptron(1, 8, 1)
    optim = tg.optim.Adam(net.parameters(), lr=0.01)

    def step(t):
        t = t.detach().clone().requires_grad_()
        u = net(t)
        (first,) = tg.autograd.grad(u.sum(), t, create_graph=True)
        (second,) = tg.autograd.grad(first.sum(), t, create_graph=True)
        start = net(tg.zeros((1, 1))) - 1
        loss = (second + u).pow(2).mean() + start.pow(2).sum()
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [net], batches((6, 1))


@program
def learning_to_learn_with_an_inner_step():
    model = nn.Linear(2, 1)
    optim = tg.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y, x_later, y_later):
        inner = F.mse_loss(model(x), y)
        gw, gb = tg.autograd.grad(inner, [model.weight, model.bias], create_graph=True)
        fast = model.weight - 0.1 * gw, model.bias - 0.1 * gb
        outer = F.mse_loss(F.linear(x_later, *fast), y_later)
        optim.zero_grad()
        outer.backward()
        optim.step()
        return inner.detach(), outer.detach()

    return step, [model, optim], batches((3, 2), (3, 1), (3, 2), (3, 1))


@program
def penalty_on_activations_with_a_hook():
    body, head, kept = perceptron(3, 5), nn.Linear(5, 1), {}
    body.register_forward_hook(lambda module, args, out: kept.__setitem__("h", out))
    optim = tg.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)

    def step(x, y):
        loss = F.mse_loss(head(body(x)), y) + 0.01 * kept["h"].abs().mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [body, head], batches((3, 3), (3, 1))


@program
def mean_of_masked_losses():
    model = nn.Linear(3, 1)
    optim = tg.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        losses = F.mse_loss(model(x), y, reduction="none")
        keep = y > 0
        loss = losses[keep].sum() / keep.sum().clamp(min=1)
        worst = losses.flatten().topk(2).values.mean()
        optim.zero_grad()
        (loss + worst).backward()
        optim.step()
        return loss.detach()

    return step, [model], batches((5, 3), (5, 1))


@program
def mixture_of_experts():
    experts = nn.ModuleList([nn.Linear(3, 2) for _ in range(3)])
    gate = nn.Linear(3, 3)
    optim = tg.optim.Adam([*experts.parameters(), *gate.parameters()], lr=0.01)

    def step(x, y):
        weights, chosen = gate(x).softmax(-1).topk(2, dim=-1)
        outs = tg.stack([expert(x) for expert in experts], dim=1)
        picked = outs.gather(1, chosen[..., None].expand(-1, -1, 2))
        loss = ((picked * weights[..., None]).sum(1) - y).pow(2).mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
        return loss.detach()

    return step, [experts, gate], batches((4, 3), (4, 2))
