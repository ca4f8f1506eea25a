"""Files as memory: what `from_file` of tensors and storages shows."""

import mmap
import os


class MappedFile(mmap.mmap):
    """Bytes of a file that know its name where they are shared."""

    shared_name = None


def mapped_file(filename, shared, wanted):
    """The first bytes of a file as memory, None where none are wanted; if shared, the file is made and made longer."""
    if not shared and not os.path.exists(filename):
        raise RuntimeError(
            f"from_file(): unable to open {os.fspath(filename)}: there is no such file; shared=True makes it"
        )
    with open(os.open(filename, os.O_RDWR | os.O_CREAT, 0o666) if shared else filename, "r+b" if shared else "rb") as f:
        have = f.seek(0, os.SEEK_END)
        if have < wanted and not shared:
            raise RuntimeError(
                f"from_file(): {os.fspath(filename)} has {have} bytes, and {wanted} are wanted: shared=True adds them"
            )
        if have < wanted:
            f.truncate(wanted)
        if not wanted:
            return None
        made = MappedFile(f.fileno(), wanted, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
        made.shared_name = os.fspath(filename) if shared else None
        return made
