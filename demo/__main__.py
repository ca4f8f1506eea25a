"""`make demo`: train with what plugins brought, draw, save, load in a new process, write a text, check the plugins."""

import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import tinygrad_ext as tg
from demo import graphs, packages, text
from demo.data import digits
from demo.model import DigitsNet, accuracy, scores_of, train
from demo.pictures import learning_curve, misread

OUTPUT = Path("demo_output")
EPOCHS = 30
WANTED = 0.98


def run(console):
    """Train and write everything below OUTPUT; returns the held-out accuracy."""
    OUTPUT.mkdir(exist_ok=True)
    tg.manual_seed(0)
    training, held_out = digits()
    model = DigitsNet()
    size = sum(p.numel() for p in model.parameters())
    console.print(
        f"[bold]tinygrad_ext {tg.__version__}[/]: a CNN with {size:,} parameters learns to read digits "
        f"({len(training)} scans to learn from, {len(held_out)} held out)"
    )
    history = []
    started = time.perf_counter()
    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("epoch {task.completed:.0f}/{task.total:.0f}"),
        TextColumn(
            "loss {task.fields[loss]:.4f}  accuracy {task.fields[accuracy]:.1%}  held out {task.fields[held_out]:.1%}"
        ),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=EPOCHS, loss=float("nan"), accuracy=0.0, held_out=0.0)

        def report(epoch, loss, share):
            unseen = accuracy(scores_of(model, held_out), held_out)
            history.append((loss, share, unseen))
            bar.update(task, advance=1, loss=loss, accuracy=share, held_out=unseen)

        train(model, training, EPOCHS, report)
    seconds = time.perf_counter() - started
    scores = scores_of(model, held_out)
    tg.save(model.state_dict(), OUTPUT / "digits.safetensors")
    tg.save({"scores": scores}, OUTPUT / "scores.safetensors")
    learning_curve(history, OUTPUT / "learning_curve.png")
    wrong = misread(held_out, scores.argmax(1), OUTPUT / "misread.png")
    reached = accuracy(scores, held_out)
    console.print(
        f"held-out accuracy [bold]{reached:.2%}[/] ({wrong} misread) after {EPOCHS} epochs in {seconds:.1f} s, "
        f"{tg.get_num_threads()} thread(s), peak tensor memory {tg.memory_stats()['peak'] / 2**20:.0f} MiB"
    )
    graphs.show(console, model, training, held_out, OUTPUT)
    return reached


def reload_elsewhere():
    """Load the weights in a new process and compare the predictions bit for bit."""
    subprocess.run([sys.executable, "-m", "demo.reload", str(OUTPUT)], check=True)


def console_for(out):
    """Lines are as long as they are unless `out` is a terminal: in a file, rich would wrap them at 80 columns."""
    return Console(file=out, soft_wrap=not out.isatty())


def main():
    console = console_for(sys.stdout)
    packages.show(console)
    reached = run(console)
    reload_elsewhere()
    console.print(
        f"plugins used   {packages.used()}\n"
        f"weights        {OUTPUT / 'digits.safetensors'}: reloaded in a new process, predictions equal bit for bit\n"
        f"graphs         {OUTPUT / 'digits.tgx'}: loaded in a new process without the class, predictions equal bit for "
        f"bit; drawn in {OUTPUT / 'digits_graph.svg'}\n"
        f"learning curve {OUTPUT / 'learning_curve.png'}\n"
        f"misread digits {OUTPUT / 'misread.png'}"
    )
    learned = text.show(console)
    passed = packages.check_all(console)
    console.print(
        "\nNext: change the network in demo/model.py and run `make demo` again; see where an op is defined with "
        "`.venv/bin/python -m tinygrad_ext ops where exp`; read docs/start.md."
    )
    if not passed:
        sys.exit("a plugin fails its checks")
    if reached < WANTED:
        sys.exit(f"held-out accuracy {reached:.2%} is below {WANTED:.0%}")
    if learned > text.WANTED:
        sys.exit(f"the loss of a letter, {learned:.2f}, is above {text.WANTED}")


if __name__ == "__main__":
    main()
