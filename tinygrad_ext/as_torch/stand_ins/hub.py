"""torch.hub: models from the network, which nothing here fetches."""

import os

from . import absent

_WHY = "nothing is fetched from the network; download the file and read it with torch.load"
globals().update(absent.functions("hub", "download_url_to_file help list load load_state_dict_from_url", _WHY))
_folder = None


def get_dir():
    """The folder where files that were fetched would lie."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return _folder or os.path.join(os.path.expanduser(home), "hub")


def set_dir(d):
    """Choose that folder."""
    global _folder
    _folder = os.path.expanduser(d)
