"""The digits: 1797 real scans of 8 x 8 pixels, from scikit-learn's wheel."""

import tinygrad_ext as tg
from tinygrad_ext.utils.data import TensorDataset


def digits(seed=0):
    """(training set, test set): three quarters and one quarter, shuffled by `seed`.

    Images are float32 of shape (1, 8, 8) with values in [0, 1], labels int64.
    """
    from sklearn.datasets import load_digits

    raw = load_digits()
    images = tg.from_numpy(raw.images).float().unsqueeze(1) / 16
    labels = tg.from_numpy(raw.target).long()
    order = tg.randperm(len(labels), generator=tg.Generator().manual_seed(seed))
    split = 3 * len(labels) // 4
    train, test = order[:split], order[split:]
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])
