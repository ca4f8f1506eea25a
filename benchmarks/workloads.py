"""Whole workloads for benchmarks/wide.py: a function of a module, ours or PyTorch's, returns what is timed."""

WORKLOADS = {}


def workload(build):
    """Decorator: add a builder under its name."""
    WORKLOADS[build.__name__.strip("_").replace("_", " ")] = build
    return build


def _step(m, model, x, y, loss=None, optimizer=None):
    """A training step."""
    loss = loss or m.nn.functional.cross_entropy
    opt = (optimizer or m.optim.SGD)(model.parameters(), lr=1e-5)

    def step():
        opt.zero_grad()
        loss(model(x), y).backward()
        opt.step()

    return step


def _mlp(m):
    nn = m.nn
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)), m.rand(64, 784), m.arange(64) % 10


@workload
def MLP_784_512_10_forward(m):
    model, x, _ = _mlp(m)
    return lambda: model(x)


@workload
def MLP_784_512_10_step_of_Adam(m):
    return _step(m, *_mlp(m), optimizer=m.optim.Adam)


def _lenet(m):
    nn = m.nn
    features = (
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
    )
    return nn.Sequential(*features, nn.Flatten(), nn.Linear(400, 84), nn.Tanh(), nn.Linear(84, 10))


@workload
def LeNet_forward(m):
    model, x = _lenet(m), m.rand(32, 1, 28, 28)
    return lambda: model(x)


@workload
def LeNet_step(m):
    return _step(m, _lenet(m), m.rand(32, 1, 28, 28), m.arange(32) % 10)


def _resnet(m, blocks):
    """A ResNet of basic blocks, two a width."""
    nn = m.nn

    class Block(nn.Module):
        def __init__(self, before, width, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(before, width, 3, stride, 1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, 1, 1, bias=False),
                nn.BatchNorm2d(width),
            )
            self.short = nn.Identity()
            if stride > 1 or before != width:
                self.short = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

        def forward(self, x):
            return m.relu(self.body(x) + self.short(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for k, width in enumerate((64, 128, 256, 512)[:blocks]):
        layers += [Block(before, width, 2 if k else 1), Block(width, width, 1)]
        before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


@workload
def ResNet_18_forward(m):
    model, x = _resnet(m, 4).eval(), m.rand(1, 3, 224, 224)
    return lambda: model(x)


@workload
def ResNet_18_step(m):
    return _step(m, _resnet(m, 4), m.rand(4, 3, 96, 96), m.arange(4) % 10)


@workload
def LSTM_step(m):
    nn = m.nn

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.out = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

        def forward(self, x):
            return self.out(self.cells(x)[0][:, -1])

    return _step(m, Reader(), m.rand(16, 20, 32), m.arange(16) % 10)


@workload
def GPT_step(m):
    nn, width, length = m.nn, 64, 64

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            heads = [t.view(*x.shape[:2], 4, width // 4).transpose(1, 2) for t in self.qkv(self.one(x)).chunk(3, -1)]
            seen = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
            return x + self.mlp(self.two(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(128, width), nn.Embedding(length, width)
            self.blocks, self.out = nn.Sequential(Block(), Block()), nn.Linear(width, 128)

        def forward(self, x):
            return self.out(self.blocks(self.words(x) + self.places(m.arange(length)))).flatten(0, 1)

    x = m.arange(4 * length).view(4, length) % 128
    return _step(m, GPT(), x, x.flatten(), optimizer=m.optim.Adam)


@workload
def autoencoder_step(m):
    nn = m.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Sigmoid(),
    )  # fmt: skip
    x = m.rand(16, 1, 28, 28)
    return _step(m, model, x, x, loss=nn.functional.mse_loss)
