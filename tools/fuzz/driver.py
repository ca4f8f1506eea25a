"""Hands blocks of cases to workers, sees what they die of, and writes each failing case down."""

import json
import os
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from . import findings
from .case import module_of
from .worker import attempt, text

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60  # seconds of the processor that a case may take (sanitizers are slow), or a tenth of those it may wait
LIVES = 200  # blocks a worker does before another takes its place, so that nothing piles up


class Worker:
    """One process that runs blocks of one target."""

    def __init__(self, target, seed, folder):
        self.progress = Path(folder, f"progress-{id(self)}")
        self.progress.write_bytes(bytes(8))
        self.errors = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open as long as the worker lives
        env = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "tools.fuzz.worker", target, str(seed), str(self.progress)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        self.answers = queue.Queue()
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()
        self.blocks = 0

    def _listen(self):
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put(None)

    def run(self, first, stop, fault):
        """Do the cases first to stop; calls fault(description) for each that fails. Returns (calls, next to do)."""
        self.blocks += 1
        try:
            print(first, stop, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass
        last, used, since = None, 0.0, 0.0
        while True:
            try:
                line = self.answers.get(timeout=1)
            except queue.Empty:
                number = self._number()
                if number != last:
                    last, used, since = number, self._used(), time.monotonic()
                elif self._used() - used > PATIENCE or time.monotonic() - since > 10 * PATIENCE:
                    return 0, self._gone(fault, f"no end after {PATIENCE} s", first)
                continue
            if line is None:
                return 0, self._gone(fault, None, first)
            answer = json.loads(line)
            if "done" in answer:
                return answer["calls"], stop
            fault({**answer, "from": first})

    def _number(self):
        return struct.unpack("q", self.progress.read_bytes())[0]

    def _used(self):
        """Seconds of the processor that the process has had, so that other work on the machine makes no faults."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _gone(self, fault, why, first):
        """Note the case that ended the process; the number after it."""
        if why:
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(1)
            self.process.kill()
        code = self.process.wait()
        number = max(self._number(), first)
        fault({"number": number, "what": why or _death(code), "trace": self.said(), "text": None, "from": first})
        return number + 1

    def said(self):
        """The end of what the process wrote to stderr, or the start of a sanitizer's report in it."""
        length = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, length - 60_000))
        said = self.errors.read().decode(errors="replace")
        at = max(said.find("ERROR: AddressSanitizer"), said.find("runtime error:"), said.find("Fatal Python error"))
        return said[max(0, at - 200) :][:6000] if at >= 0 else said[-3000:]

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()  # the end of its work
            try:
                self.process.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.listener.join()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()
        self.progress.unlink(missing_ok=True)


def _death(code):
    names = {-s.value: s.name for s in signal.Signals}
    return {98: "UndefinedBehaviorSanitizer", 99: "AddressSanitizer"}.get(code, f"crash: {names.get(code, code)}")


class Campaign:
    """A seed's cases of one target, done by several workers until time or number is up."""

    def __init__(self, target, seed, state, found, *, jobs, block):
        self.target, self.seed, self.state, self.found = target, seed, state, found
        self.jobs, self.block, self.lock = jobs, block, threading.Lock()
        self.row = state.row(target)

    def run(self, deadline, cases):
        """Until the clock is at `deadline` or `cases` more are done."""
        self.stop = None if cases is None else self.row["next"] + cases
        self.deadline = deadline
        threads = [threading.Thread(target=self._work) for _ in range(self.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.state.write()

    def _take(self):
        with self.lock:
            first = self.row["next"]
            stop = first + self.block if self.stop is None else min(first + self.block, self.stop)
            if stop <= first or (self.deadline and time.monotonic() > self.deadline):
                return None
            self.row["next"] = stop
            return first, stop

    def _work(self):
        worker, began = None, time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            while block := self._take():
                first, stop = block
                while first < stop and not (self.deadline and time.monotonic() > self.deadline + PATIENCE):
                    worker = worker or Worker(self.target, self.seed, folder)
                    calls, reached = worker.run(first, stop, self._fault)
                    with self.lock:
                        self.row["cases"] += reached - first
                        self.row["calls"] += calls or reached - first
                    first = reached
                    if worker.process.poll() is not None or worker.blocks >= LIVES:
                        worker.end()
                        worker = None
            if worker:
                worker.end()
        with self.lock:
            self.row["seconds"] += time.monotonic() - began

    def _fault(self, fault):
        with self.lock:
            self.row["faults"] += 1
            self.found.add(self.target, self.seed, fault)


class State:
    """How far each target is, in a file, so that a run can be resumed."""

    def __init__(self, path, resume):
        self.path = path
        self.rows = json.loads(path.read_text()) if resume and path.exists() else {}

    def row(self, target):
        return self.rows.setdefault(target, {"next": 0, "cases": 0, "calls": 0, "faults": 0, "seconds": 0.0})

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.rows, indent=1))


def replay(path):
    """Run the case that a file describes again, in this process."""
    target, seed, number, first = findings.read(path)
    module = module_of(target)
    print(text(module, target, seed, number))
    for n in range(first, number + 1):
        _, fault = attempt(module, target, seed, n)
        if n == number:
            print(f"{fault['what']}\n{fault['trace']}" if fault else "no fault")
            return 1 if fault else 0
    return 0
