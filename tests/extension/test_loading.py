"""The handshake, what is undone when it fails, and extensions that lie, fail or return nonsense."""

import os
import subprocess
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.extension import elf, table
from tinygrad_ext.library import state
from tinygrad_ext.registry import scope
from tinygrad_ext.utils import compiling, cpp_extension

from .conftest import KERNEL

# runs before init does, if the library is loaded
CONSTRUCTOR = (
    '#include <stdlib.h>\n__attribute__((constructor)) static void run(void) { setenv("TGX_PROBE_RAN", "1", 1); }\n'
)
DATA = """
static int init(tgx_ctx *c, const tgx_api *api) { return 0; }
TGX_EXPORT extern const tgx_extension tgx_extension_v1;
const tgx_extension tgx_extension_v1 = {%s};
"""


@pytest.fixture
def built(tmp_path):
    """Compile a text that is not loaded; its path."""

    def build(text, *flags):
        source = [("probe.c", text, ("probe.c", 1), "#include <tgx.h>\n")]
        return compiling.build(compiling.Job("probe", source, [*flags], [], []), tmp_path)

    return build


def op(inline, body, schema="(Tensor x) -> Tensor", more=""):
    inline(KERNEL.format(body=body, schema=schema, more=more and f", {more}"))
    return tg.ops.probe.op


# ---- the handshake -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, error, words",
    [
        (
            'sizeof(tgx_extension), 2, 0, 0, "p", "1", init',
            ImportError,
            r"built for table 2\.0.*has\s*1\.1.*--includes",
        ),
        ('sizeof(tgx_extension), 1, 9, 0, "p", "1", init', ImportError, r"needs table 1\.9.*TGX_TARGET_MINOR 1"),
        ('sizeof(tgx_extension), 1, 0, 1ull << 40, "p", "1", init', ImportError, "features 0x10000000000"),
        ('8, 1, 0, 0, "p", "1", init', ImportError, "has 8 bytes, which cannot be"),
        ('4000, 1, 0, 0, "p", "1", init', ImportError, "of 40 bytes that says it has 4000"),
        ('100000, 1, 0, 0, "p", "1", init', ImportError, "bytes"),
        ("sizeof(tgx_extension), 1, 0, 0, 0, 0, init", ImportError, "without a name"),
        ('sizeof(tgx_extension), 1, 0, 0, "p", "1", 0', RuntimeError, "without an init"),
    ],
)
def test_what_an_extension_exports_is_judged(built, data, error, words):
    path = built("#define TGX_NO_TABLE\n" + DATA % data)
    before = dict(registry.ops)
    with pytest.raises(error, match=words):
        tg.ops.load_library(path)
    assert registry.ops == before


def test_nothing_of_an_extension_for_another_table_runs(built):
    path = built(CONSTRUCTOR + DATA % 'sizeof(tgx_extension), 1, 9, 0, "p", "1", init')
    with pytest.raises(ImportError):
        tg.ops.load_library(path)
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); import os; libc = ctypes.CDLL(None); libc.getenv.restype = "
    code += "ctypes.c_char_p; assert libc.getenv(b'TGX_PROBE_RAN')"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)  # it would have been seen
    import ctypes

    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    assert libc.getenv(b"TGX_PROBE_RAN") is None


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\x7fELF\x02\x01" + b"\xff" * 300, b"\x7fELF\x02\x01" + bytes(300)]
)
def test_a_file_that_is_no_library_is_told(tmp_path, content):
    path = tmp_path / "x.so"
    path.write_bytes(content)
    with pytest.raises(OSError, match="no shared library that exports tgx_extension_v1"):
        tg.ops.load_library(path)


def test_a_library_cut_anywhere_is_told(built, tmp_path):
    whole = built(KERNEL.format(body="", schema="() -> ()", more="")).read_bytes()
    path = tmp_path / "x.so"
    for length in range(0, len(whole) - 64, len(whole) // 60):
        path.write_bytes(whole[:length])
        with pytest.raises(OSError):
            elf.exported(path)


def test_a_library_without_the_symbol_and_a_missing_file_are_told(built, tmp_path):
    with pytest.raises(OSError, match="exports tgx_extension_v1"):
        tg.ops.load_library(built("#define TGX_NO_TABLE\nint x;\n"))
    with pytest.raises(FileNotFoundError):
        tg.ops.load_library(tmp_path / "nowhere.so")


def test_an_undefined_symbol_is_named(built):
    text = KERNEL.format(
        body="extern int no_such_function(void); out[0] = tgx_of_int(no_such_function());", schema="() -> int", more=""
    )
    path = built(text)
    assert "no_such_function" in elf.undefined(path)
    with pytest.raises(OSError, match="no_such_function"):
        tg.ops.load_library(path)


def test_samples_take_nothing_of_the_core_by_name(squares):
    from tinygrad_ext.extension.loading import loaded

    (path,) = loaded
    assert not [name for name in elf.undefined(path) if "tgx" in name.lower() or name.startswith(("Py", "_Py"))]


def test_an_older_core_is_played(tmp_path):
    code = """
import tinygrad_ext as tg
from tinygrad_ext.utils.cpp_extension import load_inline
text = '''
static int one(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    out[0] = tgx_of_int(tgx->minor);
    return 0;
}
static int init(tgx_ctx *c) { return tgx->register_op(c, &TGX_OP(.schema = "probe::one() -> int", .kernel = one)); }
TGX_EXTENSION("probe", "1", init)
'''
load_inline("probe", c_sources=text)
assert tg.ops.probe.one() == 0
try:
    load_inline("newer", c_sources=text, extra_cflags=["-DTGX_TARGET_MINOR=1"])
except ImportError as error:
    print(error)
"""
    env = {**os.environ, "TINYGRAD_EXT_ABI_PRETEND": "1.0", "TINYGRAD_EXT_EXTENSIONS_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "needs table 1.1" in done.stdout and "has 1.0" in done.stdout and "TGX_TARGET_MINOR 0" in done.stdout


def test_a_version_that_cannot_be_played_is_told(built, monkeypatch):
    monkeypatch.setenv("TINYGRAD_EXT_ABI_PRETEND", "7")
    with pytest.raises(ValueError, match="such as 1.0"):
        tg.ops.load_library(built(KERNEL.format(body="", schema="() -> ()", more="")))
    with pytest.raises(ValueError, match=r"from 1\.0 to 1\.1"):
        table.pretend(9)


# ---- registering ---------------------------------------------------------------------------------------------------


def test_a_failing_init_leaves_nothing_behind(inline):
    text = KERNEL.format(body="", schema="() -> ()", more="")
    text = text.replace("return tgx->register_op", "int bad = tgx->register_op")
    text = text.replace(")); \n", "").replace(
        "kernel ));", 'kernel )); return bad ? bad : tgx->fail(c, "OSError", "no %s", "file");'
    )
    before, names = dict(registry.ops), set(dir(tg.ops))
    with pytest.raises(OSError, match="probe: no file"):
        inline(text)
    assert registry.ops == before and set(dir(tg.ops)) == names
    inline(KERNEL.format(body="", schema="() -> ()", more=""))  # the name is free
    assert tg.ops.probe.op() is None


@pytest.mark.parametrize(
    "schema, more, words",
    [
        ("(Tensr x) -> Tensor", "", "unknown type 'Tensr'"),
        ("(Tensor x) -> Tensor", ".edges = 0, .schema = 0", "no schema"),
        ("(Tensor x) -> Tensor", ".kernel = 0", "no kernel"),
        ("(Tensor x) -> Tensor", ".flags = TGX_FILLS", "wants a shape"),
        ("(Tensor x) -> Tensor", ".flags = TGX_UNLOCKED", "goes with TGX_FILLS"),
        ("(Tensor(a!) x) -> ()", ".flags = TGX_DENSE", "not for ops that write"),
        ("(Tensor x) -> Tensor", ".size = 3", "says that it has 3 bytes"),
        ("(Tensor x) -> Tensor", ".saved = 99", "at most 32 places"),
        ("(Tensor x) -> Tensor", '.edges = "y"', "'y' is no positional tensor argument; they are x"),
        ("(Tensor(a) x) -> Tensor(a)", "", "view"),
    ],
)
def test_a_wrong_definition_is_told_and_undone(inline, schema, more, words):
    before = dict(registry.ops)
    with pytest.raises((TypeError, ValueError, RuntimeError), match=words):
        op(inline, "", schema, more)
    assert registry.ops == before


def test_a_name_that_is_taken_is_told(inline):
    op(inline, "")
    with pytest.raises(RuntimeError, match="probe::op is registered already"):
        inline(KERNEL.format(body="(void)0;", schema="(Tensor x) -> Tensor", more=""), name="other")


def test_a_plugin_may_only_register_in_its_own_namespace(built):
    from tinygrad_ext.extension import loading
    from tinygrad_ext.ops.record import Owner

    path = built(KERNEL.format(body="", schema="() -> ()", more=""))
    mine = scope.Scope(Owner("tgx-mine", "1"), ("mine",))
    with pytest.raises(RuntimeError, match="may not register under the foreign namespace 'probe'"):
        loading.load(path, mine)
    assert "probe::op" not in registry.ops
    ours = scope.Scope(Owner("tgx-probe", "1"), ("probe",))
    loading.load(path, ours)
    assert str(tg.ops.probe.op.owner) == "tgx-probe 1"
    ours.undo()


def test_facts_of_python_are_put_into_the_record(built):
    from tinygrad_ext.extension import loading

    path = built(KERNEL.format(body="", schema="() -> ()", more=""))
    with pytest.raises(ValueError, match="facts about 'nothing'"):
        loading.load(path, scope.application, {"nothing": {}})
    loading.load(path, scope.application, {"op": {"doc": "Does nothing."}})
    assert registry.ops["probe::op"].record.doc == "Does nothing."


def test_an_extension_is_loaded_once_and_again_after_it_was_taken_back(squares):
    from tinygrad_ext.extension.loading import loaded

    ((path, made),) = loaded.items()
    assert tg.ops.load_library(path) is made and "squares::by_call" in repr(made)


def test_threads_call_ops_of_an_extension_at_once(squares):
    import threading

    wrong = []

    def work(k):
        x = tg.full((50000,), float(k), requires_grad=True)
        for _ in range(30):
            if squares.plus(x.detach(), 1.0)[7].item() != k + 1:
                wrong.append(k)
            (g,) = tg.autograd.grad(squares.by_memory(x).sum(), x)
            if g[3].item() != 2 * k:
                wrong.append(k)

    started = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in started]
    [t.join() for t in started]
    assert not wrong


def test_the_header_and_the_capsule_are_where_they_are_said_to_be():
    import ctypes

    (folder,) = tg.utils.include_paths()
    assert os.path.exists(os.path.join(folder, "tgx.h")) and cpp_extension.include_paths() == [folder]
    get = ctypes.pythonapi.PyCapsule_Import
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
    size, major, minor = (ctypes.c_uint32 * 2).from_address(get(b"tinygrad_ext._C_API", 0))[0], 1, 1
    assert size == table.facts()["size"] and (table.facts()["major"], table.facts()["minor"]) == (major, minor)


# ---- packages that bring a library which is refused ----------------------------------------------------------------


def test_what_a_package_registers_for_ops_of_a_refused_library_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "refused_libraries", [])
    fake = lambda x: x
    with pytest.raises(OSError, match=r"missing\.so"):  # that was no library of anybody's
        tg.ops.load_library(tmp_path / "missing.so")
    with pytest.raises(RuntimeError, match="there is no op 'refused::twice'"):
        tg.library.register_fake("refused::twice", fake)
    library = tmp_path / "library.so"
    library.write_bytes(b"no library")
    with pytest.raises(OSError, match="library"):
        tg.ops.load_library(library)
    assert tg.library.register_fake("refused::twice", fake) is fake
    assert tg.library.register_fake("refused::twice")(fake) is fake
    tg.library.register_autograd("refused::twice", lambda ctx, grad: grad)
    with pytest.raises(AttributeError, match="no namespace 'refused'"):
        tg.ops.refused.twice(tg.ones(2))


def test_a_name_in_a_namespace_that_has_ops_is_missed_all_the_same(monkeypatch):
    monkeypatch.setattr(state, "refused_libraries", ["library.so"])
    with pytest.raises(RuntimeError, match="there is no op 'aten::expp'"):
        tg.library.register_fake("aten::expp", lambda x: x)
    with pytest.raises(ValueError, match="must be a name with a namespace"):
        tg.library.register_autograd("expp", lambda ctx, grad: grad)
