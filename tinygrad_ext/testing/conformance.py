"""The battery as pytest tests: one for each op or module and check.

    # test_conformance.py
    from tinygrad_ext.testing import plugin_tests

    test_conformance = plugin_tests("vision")

gives test_conformance[nms-schema], test_conformance[nms-mutation] and so on: `pytest -k "nms and mutation"`.
"""

import tinygrad_ext as tg
from tinygrad_ext.testing.battery import FAILED, OP_CHECKS, SKIPPED, checks_of, run_check, subjects_of
from tinygrad_ext.testing.battery.fold import CAUSE, follows


def plugin_tests(name, *, only=()):
    """A pytest test of everything a plugin brings, to be assigned to a name that begins with test_.

    Args:
        name: the plugin's name, or its distribution's. It is loaded now, when pytest collects.
        only: names of checks; all of them unless given.

    Raises PluginError when there is no such plugin or it cannot be loaded, LookupError for a check that is not there.
    """
    import pytest

    tg.plugins.load(name)
    info = tg.plugins.info(name)
    pairs = [(s, c) for s in subjects_of(info) for c in checks_of(s, only)]
    names = {}
    for s, c in pairs:
        names.setdefault(s.name, []).append(c.name)
    ids = [f"{s.name.partition('::')[2] or s.kind}-{c.name}" for s, c in pairs]

    @pytest.mark.parametrize(("subject", "check"), [(s.name, c) for s, c in pairs], ids=ids)
    def test_conformance(subject, check):
        tg.plugins.load(name)  # another test may have unloaded it meanwhile, and then its ops are new ones
        found = next(s for s in subjects_of(tg.plugins.info(name)) if s.name == subject)
        result = run_check(check, found)
        if result.status == FAILED and CAUSE in names.get(subject, ()) and follows(found, check):
            cause = run_check(OP_CHECKS[CAUSE], found)
            if cause.status == FAILED:
                pytest.skip(f"follows from '{CAUSE}': with copies of its arguments the op passes")
        if result.status == SKIPPED:
            pytest.skip(result.message)
        if result.status == FAILED:
            raise AssertionError(str(result)) from result.error

    return test_conformance
