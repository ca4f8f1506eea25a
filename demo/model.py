"""The network and its training."""

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.optim import AdamW
from tinygrad_ext.optim.lr_scheduler import CosineAnnealingLR
from tinygrad_ext.utils.data import DataLoader


class DigitsNet(nn.Module):
    """Two convolutions and a linear layer: (batch, 1, 8, 8) images to (batch, 10) scores."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 4 * 4, 10))

    def forward(self, images):
        return self.classify(self.features(images))


def shifted(images):
    """Each batch moved by up to one pixel in each direction, which multiplies the few scans there are."""
    down, right = tg.randint(-1, 2, (2,)).tolist()
    return images.roll((down, right), (2, 3))


def train(model, data, epochs, report):
    """Train in place; calls report(epoch, loss, accuracy) after each epoch and yields nothing else."""
    loader = DataLoader(data, batch_size=64, shuffle=True)
    optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = CosineAnnealingLR(optimizer, T_max=epochs)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        total = right = 0
        for images, labels in loader:
            optimizer.zero_grad()
            scores = model(shifted(images))
            loss = loss_of(scores, labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
            right += (scores.argmax(1) == labels).sum().item()
        schedule.step()
        report(epoch, total / len(data), right / len(data))


@tg.no_grad()
def scores_of(model, data):
    """Scores (n, 10) of every image of a data set, in order."""
    model.eval()
    return tg.cat([model(images) for images, _ in DataLoader(data, batch_size=256)])


def accuracy(scores, data):
    """Share of images whose highest score is their label."""
    return (scores.argmax(1) == data.tensors[1]).float().mean().item()
