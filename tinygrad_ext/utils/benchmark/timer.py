"""`Timer`: runs a statement often enough to know its time."""

import contextlib
import enum
import statistics
import time
import timeit

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.loops.parallel import get_num_threads, set_num_threads

from .measurement import Measurement, TaskSpec

timer = time.perf_counter


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


@contextlib.contextmanager
def set_torch_threads(n):
    """That number of threads inside a `with`."""
    before = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)


@boundary
class Timer:
    """Measures a statement.

    Args:
        stmt, setup, global_setup: code as text; setup runs before each measurement, global_setup once before it.
        timer: gives seconds. globals: names that the code knows. label, sub_label, description: group, row and column
            of a Compare. env: in what it ran, for results of several processes. num_threads: while it runs.
        language: Language.PYTHON; C++ raises NotImplementedError.
    """

    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=timer,
        globals=None,
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language=Language.PYTHON,
    ):
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError(
                f"Timer: language is {language!r}; statements are Python. utils.cpp_extension compiles C"
            )
        for name, text in (("stmt", stmt), ("setup", setup), ("global_setup", global_setup)):
            if not isinstance(text, str):
                raise TypeError(f"Timer: {name} must be code as text, not {type(text).__name__}")
        stmt, setup = _dedented(stmt), _dedented(setup)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        self._globals = dict(globals or {})
        self._timer = timeit.Timer(stmt=stmt, setup=_joined(global_setup, setup), timer=timer, globals=self._globals)

    def _time(self, number):
        """Seconds for `number` runs; more than the timer's own noise."""
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number=1_000_000):
        """One Measurement of so many runs, after a short one to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return Measurement(number, [self._time(number)], self._task_spec)

    def repeat(self, repeat=-1, number=-1):
        raise NotImplementedError("Timer.repeat: see blocked_autorange, which measures several times")

    def autorange(self, callback=None):
        """As timeit, with enough runs to take 0.2 s; callback(number, seconds) hears of each try."""
        with set_torch_threads(self._task_spec.num_threads):
            number, taken = self._timer.autorange(callback)
        return Measurement(number, [taken], self._task_spec)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Several measurements, long enough each that reading the time costs a thousandth, for min_run_time seconds."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(min_run_time)
            times = self._times(number, lambda times: sum(times) >= min_run_time, callback)
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """The same until the distance of the quartiles is below this part of the median, or max_run_time has passed."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(0.05)

            def enough(times):
                if sum(times) >= max_run_time:
                    return True
                known = len(times) >= 4 and sum(times) >= min_run_time
                return known and Measurement(number, times, self._task_spec).meets_confidence(threshold)

            return Measurement(number, self._times(number, enough, callback), self._task_spec)

    def _block(self, min_run_time):
        overhead = statistics.median(self._time(0) for _ in range(5))
        number = 1
        while True:
            taken = self._time(number)
            if (overhead / taken <= 1e-4 and taken >= min_run_time / 1000) or taken > min_run_time:
                return number
            number *= 10

    def _times(self, number, enough, callback):
        times = []
        while not times or not enough(times):
            times.append(self._time(number))
            if callback:
                callback(number, times[-1])
        return times

    def collect_callgrind(self, number=100, *, repeats=None, collect_baseline=True, retain_out_file=False):
        """Raises NotImplementedError."""
        raise NotImplementedError(
            "Timer.collect_callgrind: count instructions from outside, by `valgrind --tool=callgrind python program.py`"
        )


def _joined(*parts):
    return "\n".join(part for part in parts if part) or "pass"


def _dedented(text):
    """Code of a text in triple quotes, as it would stand at the start of its lines."""
    import textwrap  # lazy: for programs that measure

    return textwrap.dedent(text).strip("\n") or "pass"
