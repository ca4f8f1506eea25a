"""The chapter on text: an LSTM learns the Zen of Python letter by letter, and goes on from two words by itself."""

import codecs
import contextlib
import io

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.optim import AdamW

UNITS, STEPS, LENGTH, BATCH = 96, 300, 32, 32
WANTED = 0.4  # loss of a letter at the end


def zen():
    """The text that `import this` prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    return codecs.decode(this.s, "rot13")


class Letters(nn.Module):
    """The next letter: (batch, steps) numbers of letters to (batch, steps, letters) scores, and the last state."""

    def __init__(self, count, units):
        super().__init__()
        self.letters, self.cells = nn.Embedding(count, 32), nn.LSTM(32, units, batch_first=True)
        self.scores = nn.Linear(units, count)

    def forward(self, codes, state=None):
        out, state = self.cells(self.letters(codes), state)
        return self.scores(out), state


def encoded(text):
    """(the letters of a text in order, the text as their numbers)."""
    letters = sorted(set(text))
    return letters, tg.tensor([letters.index(c) for c in text])


def train(model, codes, steps, length=LENGTH, batch=BATCH):
    """Train in place on pieces of the text; returns the mean loss of a letter in each step."""
    optimizer, losses = AdamW(model.parameters(), lr=1e-2), []
    for _ in range(steps):
        starts = tg.randint(0, len(codes) - length, (batch, 1))
        pieces = codes[starts + tg.arange(length + 1)]
        scores, _ = model(pieces[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@tg.no_grad()
def continued(model, letters, start, count, temperature=0.5):
    """A text that goes on with `count` letters drawn from the model; a low temperature prefers the likely ones."""
    scores, state = model(tg.tensor([[letters.index(c) for c in start]]))
    text = start
    for _ in range(count):
        drawn = tg.multinomial((scores[0, -1] / temperature).softmax(-1), 1)
        text += letters[drawn.item()]
        scores, state = model(drawn.unsqueeze(0), state)
    return text


def show(console):
    """Train, and print how the loss falls and what the model writes; returns the last loss."""
    text = zen()
    letters, codes = encoded(text)
    tg.manual_seed(0)
    model = Letters(len(letters), UNITS)
    console.print(
        f"\n[bold]text[/]: an LSTM with {sum(p.numel() for p in model.parameters()):,} parameters learns the "
        f"{len(text)} letters of `import this`, {len(letters)} different ones"
    )
    losses = train(model, codes, STEPS)
    console.print("loss of a letter " + " → ".join(f"{losses[k]:.2f}" for k in range(0, STEPS, STEPS // 6)), end="")
    console.print(f" → {losses[-1]:.2f} after {STEPS} steps. It writes:")
    console.print(continued(model, letters, "Beautiful is", 160), style="italic", markup=False, highlight=False)
    return losses[-1]
