"""Builds in which a cast to a class is a test of it: part of builds with TINYGRAD_EXT_DEBUG and TINYGRAD_EXT_SANITIZE.

`<Tensor>o` costs nothing and believes its author; where the object is a user's, and the author was wrong, memory of
another shape is read as a tensor's. In such a build it raises SystemError. None passes: what follows may ask for it.
"""

from Cython.Compiler import ExprNodes
from Cython.Compiler.Code import UtilityCode
from Cython.Compiler.PyrexTypes import py_object_type


class CheckedCast(ExprNodes.PyTypeTestNode):
    """The test of `<T?>`, but subclasses of builtins pass, and nothing is tested without the interpreter's lock."""

    exact_builtin_type = False
    without_gil = False

    def nogil_check(self, env):
        self.without_gil = True

    def generate_result_code(self, code):
        if self.without_gil:
            return
        test = self.type.type_test_code(code.funcstate.scope, self.arg.py_result(), allow_none=True, exact=False)
        if self.type.is_extension_type:
            code.globalstate.use_utility_code(UtilityCode.load_cached("ExtTypeTest", "ObjectHandling.c"))
        where = f"{self.pos[0].get_filenametable_entry()}:{self.pos[1]}".replace("\\", "/")
        said = f'PyErr_SetString(PyExc_SystemError, "{where}: an object is cast to {self.type.name}, which it is not");'
        code.putln(f"if (!({test})) {{ {said} {code.error_goto(self.pos)} }}")


def install():
    """Let Cython, in this process, test what is cast."""
    analysed = ExprNodes.TypecastNode.analyse_types

    def analyse_types(self, env):
        node = analysed(self, env)
        if (
            node is not self
            or self.typecheck
            or env.nogil
            or not (self.type.is_extension_type or self.type.is_builtin_type)
        ):
            return node
        if self.operand.type.is_ptr:
            self.operand = ExprNodes.TypecastNode(self.pos, operand=self.operand, type=py_object_type)
        if self.operand.type is py_object_type:
            self.operand = CheckedCast(self.operand, self.type, env)
        return node

    ExprNodes.TypecastNode.analyse_types = analyse_types
