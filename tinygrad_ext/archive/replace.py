"""Replaces a file whole or not at all, whenever the process dies.

The new file has no name while it is written (O_TMPFILE), so a killed process leaves nothing behind. It gets the
target's name at once where that is free. Else it is named beside the target for the moment before the rename; whoever
is killed in that moment, or on a system without unnamed files, leaves `<name>.<16 digits>.part`. A writer holds a lock
on its file until it is done, so the next save of that name can tell what is left over and removes it.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat


def replace_file(path, write):
    """Call write(file) with an unbuffered file that takes the place of `path` when it returns, written to disk.

    A file that was there keeps its mode (and owner, where that is permitted); a new one gets the umask's. Where the
    system cannot name a file that had no name, which shows at the end, write() is called once more.
    """
    folder, name = os.path.split(os.path.realpath(path))
    try:
        place = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        raise RuntimeError(
            f"Parent directory {folder} does not exist, so {name} cannot be saved there: make it, or give another path"
        ) from None
    try:
        try:
            _replace(name, place, write, _open_unnamed)
        except _CannotName:
            _replace(name, place, write, _open_named)
        _remove_left_over(name, place)
        _sync(place)
    finally:
        os.close(place)


def write_to(f, write):
    """Call write(file) with a file open for writing, or with one that takes the place of what is at a path."""
    if hasattr(f, "write") and not isinstance(f, os.PathLike):
        write(f)
        if hasattr(f, "flush"):  # whoever opens it by its name finds all of it
            f.flush()
        return
    path = os.fspath(f)
    if os.path.isdir(path):
        raise IsADirectoryError(f"save: {path} is a directory; name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or device cannot be replaced
        with open(path, "wb", buffering=0) as file:
            write(file)
    else:
        replace_file(path, write)


class _CannotName(Exception):
    """This system has no files without a name, or cannot give them one."""


def _replace(name, place, write, open_file):
    old = _old(name, place)
    fd, part = open_file(name, place, 0o666 if old is None else 0o600)
    try:
        with open(fd, "wb", buffering=0) as file:
            if old is not None:
                _resemble(fd, old)
            write(file)
            os.fsync(fd)
            if part is None and not (old is None and _link(fd, name, place)):
                part = _part(name)
                if not _link(fd, part, place):
                    raise FileExistsError(f"save: {part} appeared beside the file")
            if part is not None:
                os.replace(part, name, src_dir_fd=place, dst_dir_fd=place)
                part = None
    finally:
        if part is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part, dir_fd=place)


def _old(name, place):
    try:
        return os.stat(name, dir_fd=place)
    except FileNotFoundError:
        return None


def _part(name):
    return f"{name}.{secrets.token_hex(8)}.part"


def _open_unnamed(name, place, mode):
    """(descriptor, None) of a fresh file without a name."""
    try:
        fd = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=place)
    except AttributeError:
        raise _CannotName from None
    except OSError as e:
        if e.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            raise _CannotName from None
        raise
    _lock(fd)
    return fd, None


def _open_named(name, place, mode):
    """(descriptor, name) of a fresh file beside the target, that this process has locked."""
    while True:
        part = _part(name)
        fd = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=place)
        _lock(fd)
        if os.fstat(fd).st_nlink:  # else another process took it for left over, before it was locked
            return fd, part
        os.close(fd)


def _lock(fd):
    with contextlib.suppress(OSError):  # a file system without locks: what is left over there stays
        fcntl.flock(fd, fcntl.LOCK_EX)


def _link(fd, name, place):
    """Give an unnamed file a name; False where the name is taken."""
    try:
        os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=place)
    except FileExistsError:
        return False
    except OSError:
        raise _CannotName from None
    return True


def _resemble(fd, old):
    """Mode and owner of the file that is replaced; its group's rights are for its group alone."""
    mode, new = stat.S_IMODE(old.st_mode), os.fstat(fd)
    try:
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            os.fchown(fd, old.st_uid, old.st_gid)
    except PermissionError:
        if new.st_gid != old.st_gid:
            mode = mode & ~0o070 | (mode & 0o007) << 3
    os.fchmod(fd, mode)


def _remove_left_over(name, place):
    """Remove the files beside `name` whose writers died."""
    pattern = re.compile(re.escape(name) + r"\.[0-9a-f]{16}\.part")
    for other in filter(pattern.fullmatch, os.listdir(place)):
        with contextlib.suppress(OSError):
            fd = os.open(other, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
            try:
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(other, dir_fd=place)
            finally:
                os.close(fd)


def _sync(place):
    """Write the folder to disk, so that the new name survives a power cut."""
    try:
        os.fsync(place)
    except OSError as e:
        if e.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that syncs no folders
            raise
