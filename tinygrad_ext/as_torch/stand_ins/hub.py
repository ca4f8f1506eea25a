"""torch.hub: models from the network, which nothing here fetches."""

import os
import re

from . import absent

_WHY = "nothing is fetched from the network; download the file and read it with torch.load"
globals().update(absent.functions("hub", "download_url_to_file help list load load_state_dict_from_url", _WHY))
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the sum in a file's name, as in resnet18-f37072fd.pth
READ_DATA_CHUNK = 128 * 1024
_folder = None


def get_dir():
    """The folder where files that were fetched would lie."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return _folder or os.path.join(os.path.expanduser(home), "hub")


def set_dir(d):
    """Choose that folder."""
    global _folder
    _folder = os.path.expanduser(d)
