"""No file makes load crash, hang, take memory beyond its own size, or give a tensor that reaches beyond its memory."""

import io

import pytest

import tinygrad_ext as tg
from tests.helpers import hostile_archives as hostile

ARCHIVES = {name: data for name, data in hostile.archives() if name.startswith(("row", "tensor"))}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_lies_is_refused(name):
    with pytest.raises(RuntimeError, match="load: "):
        tg.load(io.BytesIO(ARCHIVES[name]))
