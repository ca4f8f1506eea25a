"""torch.hub: models from the network, which nothing here fetches."""

import os
import re
from urllib.parse import urlparse  # noqa: F401 - libraries import it from there

try:
    from tqdm import tqdm
except ImportError:

    def tqdm(iterable=None, **options):
        """What is given, without a bar."""
        return iterable


from . import absent

_WHY = "nothing is fetched from the network; download the file and read it with torch.load"
globals().update(absent.functions("hub", "download_url_to_file help list load load_state_dict_from_url", _WHY))
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the sum in a file's name, as in resnet18-f37072fd.pth
READ_DATA_CHUNK = 128 * 1024
_folder = None


def _get_torch_home():
    """The folder that such folders lie in."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(home)


def get_dir():
    """The folder where files that were fetched would lie."""
    return _folder or os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    """Choose that folder."""
    global _folder
    _folder = os.path.expanduser(d)
