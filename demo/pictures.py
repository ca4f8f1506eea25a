"""The pictures that a run leaves behind."""

WHY_ABOVE = """Held out may stand above training: dropout
and moved images make training scans harder,
and its average is taken while it still learns."""
SIDE = 1.5  # inches of a digit, with its line of text


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def learning_curve(history, path):
    """Loss and accuracy over the epochs; history holds (loss, training accuracy, held-out accuracy)."""
    plt = _pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    epochs = range(1, len(history) + 1)
    left.plot(epochs, [h[0] for h in history], color="tab:red")
    left.set(xlabel="epoch", ylabel="cross entropy", title="Training loss", yscale="log")
    right.plot(epochs, [100 * h[1] for h in history], label="training")
    right.plot(epochs, [100 * h[2] for h in history], label="held out")
    right.set(xlabel="epoch", ylabel="%", title="Accuracy", ylim=(80, 100.5))
    right.legend(loc="lower right", title=WHY_ABOVE, title_fontsize=8, alignment="left")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def misread(data, guesses, path, most=24):
    """The digits whose guess is wrong, with label and guess."""
    plt = _pyplot()
    images, labels = data.tensors
    wrong = [i for i in range(len(labels)) if guesses[i].item() != labels[i].item()]
    shown = wrong[:most]
    columns = min(max(len(shown), 1), 8)
    rows = max(1, -(-len(shown) // columns))
    size = max(columns * SIDE, 4.5), rows * 1.15 * SIDE + 0.5  # the title needs some width
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for axis in axes.flat:
        axis.axis("off")
    for axis, i in zip(axes.flat, shown):
        axis.imshow(images[i, 0].numpy(), cmap="gray_r")
        axis.set_title(f"{labels[i].item()} read as {guesses[i].item()}", fontsize=10)
    rest = f", the first {most}" if len(wrong) > most else ""
    figure.suptitle(f"Misread: {len(wrong)} of {len(labels)} held-out scans{rest}", fontsize=12)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return len(wrong)
