"""Every hook is documented, and its example is a plugin that works."""

import inspect
import re
import textwrap

import pytest

import tinygrad_ext as tg
from tinygrad_ext import hookspecs, nn, ops, plugins
from tinygrad_ext.plugins.hooks import REGISTRARS
from tinygrad_ext.plugins.versions import allows

HOOKS = [name for name in vars(hookspecs) if name.startswith("tgx_")]


def example(hook):
    """The indented block at the end of a hook's docstring."""
    text = inspect.getdoc(getattr(hookspecs, hook))
    return textwrap.dedent(text[text.index("    from tinygrad_ext import hookimpl") :])


def test_every_hook_has_a_registrar():
    assert sorted(HOOKS) == sorted(REGISTRARS)


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_typed_and_documented(hook):
    spec = getattr(hookspecs, hook)
    assert set(spec.__annotations__) == {"return", *inspect.signature(spec).parameters}
    assert re.match(r"[A-Z].*\.\n", inspect.getdoc(spec))


@pytest.mark.parametrize("hook", HOOKS)
def test_the_example_of_a_hook_works(hook, site):
    site.plugin(text=example(hook))
    plugins.load("demo")
    assert plugins.info("demo").state == "active"


def test_what_the_examples_register_is_there(site):
    site.plugin(text=example("tgx_register_ops"))
    assert ops.demo.double(tg.ones(2)).tolist() == [2, 2]
    plugins.disable("demo")
    plugins.enable("demo")
    site.write("tgx_demo/plugin.py", example("tgx_register_modules"))
    assert nn.plugins.demo.Double()(tg.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize(
    "specifier, version, expected",
    [
        (">=1,<2", (1, 0), True),
        (">=1,<2", (2, 0), False),
        ("==1", (1, 0), True),
        ("==1", (1, 1), False),
        ("!=1.1", (1, 1), False),
        (">1", (1, 0), False),
        ("<=1.0.0", (1, 0), True),
        (">= 1.2", (1, 10), True),
    ],
)
def test_versions_compare_as_numbers(specifier, version, expected):
    assert allows(specifier, version) is expected


@pytest.mark.parametrize("specifier", ["", " ", None, "1", "~=1", ">=1;<2", ">=a", ">=1,", 1.0])
def test_what_is_no_specifier_is_refused(specifier):
    with pytest.raises(ValueError, match="requires_api"):
        allows(specifier, (1, 0))
