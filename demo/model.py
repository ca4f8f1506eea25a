"""The network and its training. What is called vision and special comes from the packages below plugins/."""

import tinygrad_ext as tg
from tinygrad_ext import nn, ops
from tinygrad_ext.optim import AdamW
from tinygrad_ext.optim.lr_scheduler import CosineAnnealingLR
from tinygrad_ext.utils.data import DataLoader


class Glance(nn.Module):
    """In training, another look at each image: a box moved by up to a pixel and up to a tenth larger or smaller.

    (batch, channels, height, width) to the same shape. There are few scans, and this multiplies them.
    """

    def forward(self, images):
        if not self.training:
            return images
        batch, _, height, width = images.shape
        middle = tg.rand(batch, 2) * 2 - 1 + tg.tensor([(width - 1) / 2, (height - 1) / 2])
        half = tg.tensor([width / 2, height / 2]) * (0.9 + 0.2 * tg.rand(batch, 1))
        boxes = tg.cat([tg.arange(batch)[:, None], middle - half, middle + half], 1)
        return ops.vision.roi_align(images, boxes, 1.0, height, width, 1)


class DigitsNet(nn.Module):
    """Two convolutions and a linear layer: (batch, 1, 8, 8) images to (batch, 10) scores.

    After the first convolution each channel learns how sharply it switches between on and off.
    """

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            Glance(),
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.create("special::NormalGate", channels=16),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 4 * 4, 10))

    def forward(self, images):
        return self.classify(self.features(images))


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
            scores = model(images)
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
