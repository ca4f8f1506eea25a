"""The table of checks, and how one is run."""

import contextlib
import time
import warnings

import tinygrad_ext as tg
from tinygrad_ext.core.data.random import default_generator
from tinygrad_ext.core.grad.guard import trusting
from tinygrad_ext.overrides.modes import _get_current_function_mode_stack as _modes
from tinygrad_ext.overrides.modes import _pop_mode
from tinygrad_ext.testing.battery.result import FAILED, PASSED, SKIPPED, NotApplicable, Result
from tinygrad_ext.testing.battery.shrink import smallest

OP_CHECKS = {}  # name -> Check, in the order in which they run
MODULE_CHECKS = {}


class Check:
    """One thing that must hold.

    Attributes:
        name, doc: what it is called, and the first line of its function.
        run: run(subject, sample, dtype) raises AssertionError when it does not hold, NotApplicable when it has
            nothing to say; any other exception is a failure too. What it returns, if anything, is a remark. For
            each="subject" it is run(subject).
        dtypes: "some" (float32 and int64), "supported", "every", "float" or "double".
        gap: the word in a record's `gaps` that excuses from it.
        any_values: it is a law whatever the values are.
        requires_grad: floating tensors of its samples require grad.
    """

    def __init__(self, run, name, each, dtypes, gap, any_values, requires_grad):
        self.run, self.name, self.each, self.dtypes = run, name, each, dtypes
        self.gap, self.any_values, self.requires_grad = gap or name, any_values, requires_grad
        self.doc = run.__doc__.strip().partition("\n")[0]

    def __repr__(self):
        return f"<check {self.name}: {self.doc}>"


def check(table, name, *, each="case", dtypes="some", gap=None, any_values=False, requires_grad=False):
    """Decorator: enter a function into a table of checks."""

    def enter(run):
        table[name] = Check(run, name, each, dtypes, gap, any_values, requires_grad)
        return run

    return enter


def run_check(check, subject):
    """Run a check on all cases of a subject and give the Result; a failing case is made as small as it gets.

    Random state and settings are left as they were.
    """
    start = time.perf_counter()
    result = Result(subject.name, subject.kind, check.name, PASSED)
    random = default_generator.get_state()
    try:
        # trusting: the checks tell more than the first one that a call would fail
        with warnings.catch_warnings(), trusting(), tg.enable_grad():
            warnings.simplefilter("ignore")
            _run(check, subject, result)
    finally:
        default_generator.set_state(random)
    result.seconds = time.perf_counter() - start
    return result


def _run(check, subject, result):
    reason = subject.why_not(check)
    if reason is not None:
        result.status, result.message = SKIPPED, reason
    elif check.each == "subject":
        error, remark = _raised(check.run, subject)
        result.cases, result.message = 1, remark or ""
        _note(result, error)
    else:
        _run_cases(check, subject, result)


def _run_cases(check, subject, result):
    skips = []
    run = lambda case: _raised(check.run, subject, case.fresh(), case.dtype)
    fails = lambda case: _failure(run(case)[0])
    with _settings_kept():
        cases = subject.cases(check)
    for case in cases:
        result.cases += 1
        error, remark = run(case)
        result.message = result.message or remark or ""
        if isinstance(error, NotApplicable):
            skips.append(error)
        elif error is not None:
            case, error = smallest(case, error, fails, subject.arguments, check.any_values)
            _note(result, error)
            result.case, result.dtype = subject.text(case), case.dtype
            return
    if len(skips) == result.cases:
        result.status = SKIPPED
        result.message = str(skips[0]) if skips else _no_cases(subject, check)


def _no_cases(subject, check):
    if check.dtypes in ("float", "double"):
        return "it computes in no floating dtype"
    return "no samples to call it with"


def _failure(error):
    return None if isinstance(error, NotApplicable) else error


def _raised(run, *args):
    """(exception, result) of a call, one of them None. KeyboardInterrupt goes through."""
    try:
        with _settings_kept():
            return None, run(*args)
    except (Exception, SystemExit) as error:
        return error, None


@contextlib.contextmanager
def _settings_kept():
    """What an op changes about the host in one call is not seen by the next."""
    dtype, threads, modes = tg.get_default_dtype(), tg.get_num_threads(), _modes()
    try:
        yield
    finally:
        tg.set_default_dtype(dtype)
        if tg.get_num_threads() != threads:
            tg.set_num_threads(threads)
        while len(_modes()) > len(modes):
            _pop_mode()


def _note(result, error):
    if error is None:
        return
    result.status = SKIPPED if isinstance(error, NotApplicable) else FAILED
    text = "\n".join(filter(str.strip, str(error).splitlines())) or type(error).__name__
    ours = isinstance(error, (AssertionError, NotApplicable))
    result.message = text if ours else f"raised {type(error).__name__}: {text}{_place(error)}"
    result.error = None if isinstance(error, NotApplicable) else error


def _place(error):
    """ " at file:line" of the last frame that is not ours."""
    from pathlib import Path

    own, place, tb = Path(__file__).parents[2].as_posix(), "", error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if not code.co_filename.startswith((own, "<", "tinygrad_ext/")):
            place = f"\nat {code.co_filename}:{tb.tb_lineno} in {code.co_name}"
        tb = tb.tb_next
    return place
