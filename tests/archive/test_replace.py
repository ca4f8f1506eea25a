"""A file is replaced whole or not at all, keeps its mode, and a save that dies leaves nothing for ever."""

import os
import signal
import stat
import subprocess
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext.archive import replace

HERE = pytest.mark.parametrize("unnamed", [True, False], ids=["unnamed file", "named file"])


@pytest.fixture
def files(unnamed, monkeypatch):
    """Whether the system has files without a name."""
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")


def _mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@HERE
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444, 0o755])
def test_a_file_keeps_its_mode(files, tmp_path, mode):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(mode)
    tg.save(tg.ones(2), path)
    assert _mode(path) == mode and tg.load(path).tolist() == [1, 1]


@HERE
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o027])
def test_a_new_file_has_the_mode_that_the_umask_leaves(files, tmp_path, mask):
    before = os.umask(mask)
    try:
        tg.save(tg.ones(2), tmp_path / "x")
    finally:
        os.umask(before)
    assert _mode(tmp_path / "x") == 0o666 & ~mask


def test_the_rights_of_a_group_go_to_no_other_group(tmp_path, monkeypatch):
    def forbidden(*_):
        raise PermissionError

    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o664)
    old = os.stat(path)
    fields = {name: getattr(old, name) for name in ("st_mode", "st_uid")}
    monkeypatch.setattr(os, "fchown", forbidden)
    fd = os.open(path, os.O_RDWR)
    replace._resemble(fd, type("Old", (), {**fields, "st_gid": old.st_gid + 1}))
    os.close(fd)
    assert _mode(path) == 0o644


def test_where_an_unnamed_file_gets_no_name_a_named_one_is_written(tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise PermissionError(1, "no")

    monkeypatch.setattr(os, "link", forbidden)
    for value in (1, 2):
        tg.save(value, tmp_path / "x")
        assert tg.load(tmp_path / "x") == value and os.listdir(tmp_path) == ["x"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "x").write_bytes(b"old")
    (tmp_path / "link").symlink_to("x")
    tg.save(3, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and tg.load(tmp_path / "x") == 3


# ---- a process that dies


KILLED = """
import os, signal, sys
import tinygrad_ext as tg
from tinygrad_ext.archive import replace
path, where, unnamed = sys.argv[1:]
if unnamed == "False":
    del os.O_TMPFILE
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
if where == "writing":
    replace.replace_file(path, lambda file: (file.write(b"half"), die()))
else:
    os.replace = die
    tg.save(2, path)
"""


def _killed(path, where, unnamed):
    code = subprocess.run([sys.executable, "-c", KILLED, str(path), where, str(unnamed)], check=False).returncode
    assert code == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("unnamed", [True, False])
def test_a_save_that_is_killed_leaves_the_old_file_and_at_most_one_that_the_next_removes(files, unnamed, tmp_path):
    path = tmp_path / "x"
    tg.save(1, path)
    _killed(path, "writing", unnamed)
    if unnamed:
        assert os.listdir(tmp_path) == ["x"]
    _killed(path, "naming", unnamed)
    assert tg.load(path) == 1 and len(os.listdir(tmp_path)) <= 3
    tg.save(3, path)
    assert tg.load(path) == 3 and os.listdir(tmp_path) == ["x"]


def test_what_is_left_over_is_told_from_what_is_being_written_and_from_other_files(tmp_path):
    import fcntl

    names = ["x.0123456789abcdef.part", "x.fedcba9876543210.part", "x.part", "y.0123456789abcdef.part"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    with open(tmp_path / names[1], "rb") as being_written:
        fcntl.flock(being_written, fcntl.LOCK_EX)
        tg.save(1, tmp_path / "x")
    assert sorted(os.listdir(tmp_path)) == sorted([*names[1:], "x"])


@HERE
def test_an_error_while_writing_leaves_the_old_file_alone(files, tmp_path):
    path = tmp_path / "x"
    tg.save(1, path)

    def fails(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace.replace_file(path, fails)
    assert tg.load(path) == 1 and os.listdir(tmp_path) == ["x"]


# ---- what is on disk


@HERE
def test_the_file_and_then_its_folder_are_written_to_disk(files, tmp_path, monkeypatch):
    synced = []

    def fsync(fd):
        synced.append(("folder", sorted(os.listdir(tmp_path))) if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")

    monkeypatch.setattr(os, "fsync", fsync)
    for _ in range(2):
        tg.save(1, tmp_path / "x")
    assert synced == ["file", ("folder", ["x"])] * 2


def test_a_folder_that_cannot_be_synced_is_no_error_but_a_disk_that_fails_is(monkeypatch):
    for code, refused in ((22, False), (5, True)):

        def fsync(fd, code=code):
            raise OSError(code, "no")

        monkeypatch.setattr(os, "fsync", fsync)
        if refused:
            with pytest.raises(OSError):
                replace._sync(0)
        else:
            replace._sync(0)
