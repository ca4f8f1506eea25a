"""BuildExtension: setuptools' build_ext for libraries that know no Python: one name for every version of it."""

import sys

from setuptools.command.build_ext import build_ext


class BuildExtension(build_ext):
    """The build_ext command of a setup.py: `cmdclass={"build_ext": BuildExtension}`.

    An extension made by CExtension or CppExtension becomes `<name>.so`, whichever Python builds it; others are built as
    usual.
    """

    def get_ext_filename(self, fullname):
        """File of an extension."""
        made = super().get_ext_filename(fullname)
        extension = next((e for e in self.extensions if e.name in (fullname, fullname.rpartition(".")[2])), None)
        if extension is None:
            extension = next((e for e in self.extensions if e.name.endswith("." + fullname)), None)
        if getattr(extension, "of_table", False) and sys.platform != "win32":
            return fullname.replace(".", "/") + ".so"
        return made

    def get_export_symbols(self, ext):
        """What is exported: no PyInit, where there is no Python."""
        return [] if getattr(ext, "of_table", False) else super().get_export_symbols(ext)
