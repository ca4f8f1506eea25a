"""Extensions that are compiled for a test; what they register is taken back after it."""

from pathlib import Path

import pytest

from tinygrad_ext.registry import scope
from tinygrad_ext.utils import cpp_extension

SAMPLES = Path(__file__).parent / "samples"

KERNEL = """
#include <stdlib.h>
static int kernel(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {{
    {body}
    return 0;
}}
static int init(tgx_ctx *c) {{
    return tgx->register_op(c, &TGX_OP(.schema = "probe::op{schema}", .kernel = kernel {more}));
}}
TGX_EXTENSION("probe", "1", init)
"""


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TINYGRAD_EXT_EXTENSIONS_DIR", str(tmp_path_factory.mktemp("extensions")))
        yield


@pytest.fixture(autouse=True)
def _taken_back():
    mark = scope.application.mark()
    yield
    scope.application.undo(mark)


@pytest.fixture
def squares(_cache):
    import tinygrad_ext as tg

    cpp_extension.load("squares", SAMPLES / "squares.c", extra_cflags=["-Wall", "-Wextra", "-Werror"])
    return tg.ops.squares


@pytest.fixture
def inline(_cache):
    """Compile a text of C and load it."""

    def load(text, name="probe", **more):
        return cpp_extension.load_inline(name, c_sources=text, **more)

    return load
