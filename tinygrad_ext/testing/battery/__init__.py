"""The conformance battery: checks that every op and module of a plugin must pass, and the built-in ones do.

    from tinygrad_ext.testing import battery

    print(battery.check_op(tg.ops.vision.nms))
    print(battery.check_plugin("vision").to_json())

A check is a function that runs on one case, a sample in a dtype; README.md says which file holds which.
"""

# isort: off
# importing them fills the tables, in the order in which the checks run
from tinygrad_ext.testing.battery import contract, values, derivatives, calls, leftovers, modules

# isort: on
from tinygrad_ext.testing.battery.check import MODULE_CHECKS, OP_CHECKS, Check, run_check
from tinygrad_ext.testing.battery.loading import PLUGIN_CHECKS
from tinygrad_ext.testing.battery.result import FAILED, PASSED, SKIPPED, NotApplicable, Report, Result
from tinygrad_ext.testing.battery.run import check_module, check_names, check_op, check_plugin, checks_of, subjects_of

__all__ = [
    "FAILED",
    "MODULE_CHECKS",
    "OP_CHECKS",
    "PASSED",
    "PLUGIN_CHECKS",
    "SKIPPED",
    "Check",
    "NotApplicable",
    "Report",
    "Result",
    "calls",
    "check_module",
    "check_names",
    "check_op",
    "check_plugin",
    "checks_of",
    "contract",
    "derivatives",
    "leftovers",
    "modules",
    "run_check",
    "subjects_of",
    "values",
]
