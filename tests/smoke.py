"""What an installed wheel must do: import lean, differentiate, train, save, load, bring a command line."""

import subprocess
import sys
import tempfile
from pathlib import Path

before = set(sys.modules)
import tinygrad_ext as tg

loaded = set(sys.modules) - before
assert "pluggy" not in loaded and "safetensors" not in loaded and "importlib.metadata" not in loaded, (
    "import is not lean"
)
assert "site-packages" in tg.__file__, f"not the installed package: {tg.__file__}"

from tinygrad_ext import nn, optim

tg.manual_seed(0)
x, y = tg.randn(64, 3), tg.randn(64, 1)
model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = optim.Adam(model.parameters(), lr=0.01)
losses = []
for _ in range(50):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.safetensors"
    tg.save(model.state_dict(), path)
    again = tg.load(path)
assert all(tg.equal(again[k], v) for k, v in model.state_dict().items())
# the command line is there, and says what it needs before it can be used
script = Path(sys.executable).parent / "tinygrad-ext"
told = subprocess.run([str(script), "plugins", "list"], capture_output=True, text=True, check=False)
assert told.returncode == 2 and "pip install click rich packaging" in told.stderr, told
assert len(list((Path(tg.__file__).parent / "cli" / "templates").rglob("*.in"))) >= 14
print(
    f"smoke test passed: tinygrad_ext {tg.__version__} on Python {sys.version.split()[0]}, "
    f"loss {losses[0]:.3f} to {losses[-1]:.3f}"
)
