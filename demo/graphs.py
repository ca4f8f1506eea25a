"""The same training step as one graph, and the trained model as a file of graphs that needs no class."""

import copy
import subprocess
import sys
import time

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.optim import AdamW

STEPS = 20


def show(console, model, training, held_out, output):
    """Compare a traced step with eager mode, write `digits.tgx` and the picture of its graph, load it elsewhere."""
    images, labels = training.tensors
    batches = [(images[i * 64 : i * 64 + 64], labels[i * 64 : i * 64 + 64]) for i in range(STEPS)]
    eager, traced = _step_of(copy.deepcopy(model)), _step_of(copy.deepcopy(model))
    graph_step = jit.trace(traced, batches[0])
    wanted, apart = _timed(eager, batches)
    got, together = _timed(graph_step, batches)
    if wanted != got:
        sys.exit("the traced step does not give eager mode's losses")
    nodes = sum(1 for _ in graph_step.graph.walk())
    console.print(
        f"a training step as one graph: {nodes} nodes, {together:.2f} ms a step, in eager mode {apart:.2f} ms; "
        f"{STEPS} losses equal bit for bit"
    )
    _save(model, held_out, output)
    subprocess.run([sys.executable, "-m", "demo.reload_graph", str(output)], check=True)


def _step_of(model):
    model.train()
    optimizer = AdamW(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()

    def step(images, labels):
        optimizer.zero_grad()
        loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _timed(step, batches):
    """(losses, milliseconds a step). The first two steps are not timed: they make state, graphs and plans."""
    tg.manual_seed(1)
    losses = [step(*batch).item() for batch in batches[:2]]
    started = time.perf_counter()
    losses += [step(*batch).item() for batch in batches[2:]]
    return losses, (time.perf_counter() - started) / (len(batches) - 2) * 1e3


def _save(model, held_out, output):
    model.eval()
    with tg.no_grad():
        traced = jit.trace(model, held_out.tensors[0][:64])
    jit.save(traced, output / "digits.tgx")
    (output / "digits_graph.svg").write_text(traced.graph.draw())
