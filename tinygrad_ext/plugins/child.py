"""Runs code that nobody vouches for in a process of its own: it has so much time, may print so much, and ends whole.

Between this process and the other stands a supervisor, this file run as a script. It makes itself the parent of
whatever its descendants leave behind (PR_SET_CHILD_SUBREAPER of Linux), so that one which calls setsid, forks twice or
ignores signals is found by walking the table of processes, stopped and killed. Reaping in this process instead would
mix up its own children with those. Without /proc only the process group is ended.

The supervisor knows nothing of the package and imports what Python has loaded anyhow, so it starts in milliseconds.
"""

import os
import signal
import sys
import time

LIMIT = 4 << 20  # bytes that may be printed
PATIENCE = 5.0  # seconds until processes that are killed must be gone
# what run() says in place of a status
TIMEOUT, FLOOD = "timeout", "flood"
SET_DEATH_SIGNAL, SET_SUBREAPER = 1, 36  # of prctl


def run(arguments, *, seconds, limit=LIMIT, env=None):
    """(status, output) of a program; its whole family is gone afterwards.

    Args:
        arguments: program and arguments. seconds: how long it may take. limit: bytes that it may print.
        env: as of subprocess.Popen.

    status is the exit status, negative for a signal, or TIMEOUT or FLOOD where it was ended for that. output is what
    was printed, to both streams, in their order.
    """
    import subprocess

    told, tell = os.pipe()
    try:
        supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(tell), str(os.getpid()), str(seconds), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(tell,),
            env=env,
        )
    except BaseException:
        os.close(told)
        raise
    finally:
        os.close(tell)
    try:
        flood, output = _read(supervisor, limit, time.monotonic() + seconds + PATIENCE)
    finally:
        _end(supervisor)
        supervisor.stdout.close()
        with open(told, "rb") as pipe:
            word = pipe.read(64).decode("ascii", "replace")
    if flood:
        return FLOOD, output
    return (int(word) if word.lstrip("-").isdigit() else TIMEOUT), output


def _read(supervisor, limit, until):
    """(whether it printed more than `limit` bytes, what it printed); ends with the supervisor, or at a time."""
    import select

    pipe, parts, size = supervisor.stdout.fileno(), [], 0
    os.set_blocking(pipe, False)
    while True:
        over = supervisor.poll() is not None or time.monotonic() > until  # asked before the last of it is read
        if select.select([pipe], [], [], 0 if over else 0.05)[0]:
            part = os.read(pipe, 1 << 16)
            parts.append(part[: limit - size])
            size += len(part)
            if size > limit:
                return True, b"".join(parts).decode("utf-8", "replace")
            if part:
                continue
            time.sleep(0 if over else 0.02)  # closed by a program that goes on
        if over:
            return False, b"".join(parts).decode("utf-8", "replace")


def _end(supervisor):
    """Ask the supervisor to end its family and itself; one that was stopped or killed is helped."""
    import subprocess

    for sent in (signal.SIGTERM, signal.SIGKILL):
        if supervisor.poll() is None:
            supervisor.send_signal(signal.SIGCONT)
            supervisor.send_signal(sent)
            try:
                supervisor.wait(2 * PATIENCE)
            except subprocess.TimeoutExpired:
                continue


def cut(text, size):
    """The text, or where it is longer its two ends and how much is left out."""
    if len(text) <= size:
        return text
    return f"{text[: size // 2]} ... ({len(text) - size} characters left out) ... {text[-(size // 2) :]}"


def read_text(path, limit=LIMIT):
    """The text of a file that another process wrote; "" when there is none, or more than anybody means to write."""
    try:
        with open(path, "rb") as f:
            found = f.read(limit + 1)
    except OSError:
        return ""
    return found.decode("utf-8", "replace") if len(found) <= limit else ""


# ---- the supervisor ------------------------------------------------------------------------------------------------


def _supervise(tell, parent, seconds, arguments):
    """Run the program, end its family, and tell the status on a pipe."""
    import subprocess

    signal.signal(signal.SIGTERM, _stop)
    _adopt(parent)
    _leave_no_core()
    program, word = None, ""
    try:
        program = subprocess.Popen(arguments, start_new_session=True)
        word = str(program.wait(seconds))
    except (subprocess.TimeoutExpired, SystemExit):
        word = TIMEOUT
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _kill_family(program)
        os.write(tell, word.encode())
    os._exit(0)


def _stop(number, frame):
    sys.exit()


def _adopt(parent):
    """Become the parent of orphans below this process, and end when the one above ends."""
    if sys.platform != "linux":
        return
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    prctl(SET_SUBREAPER, 1, 0, 0, 0)
    prctl(SET_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:  # it ended before the line above
        sys.exit()


def _leave_no_core():
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _kill_family(program):
    """Stop all descendants, so that none makes another meanwhile, then kill them; until there is none."""
    until = time.monotonic() + PATIENCE
    if program is not None:
        _signal_group(program.pid)
    while time.monotonic() < until:
        found = _descendants()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                _signal(pid, number)
        if not _reap() and not found:
            return


def _signal_group(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except OSError:  # gone, or of another user
        pass


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _reap():
    """Take the status of the dead; whether children are left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    time.sleep(0.002)
    return os.path.isdir("/proc/self")  # else there is no table to find them in


def _descendants():
    """Processes below this one, those nearest first; by the table of Linux."""
    children = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as f:
                    parent = int(f.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):  # it ended meanwhile
                continue
            children.setdefault(parent, []).append(int(name))
    found = list(children.get(os.getpid(), ()))
    for pid in found:
        found += children.get(pid, ())
    return found


if __name__ == "__main__":
    _supervise(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
