"""`CodeGen`: the frame of the Python that a graph is written as; subclasses give it other arguments and results."""

import re

from tinygrad_ext.utils._pytree import tree_flatten, tree_map, tree_unflatten


class CodeGen:
    """Says how a graph's function begins and ends. `Graph.set_codegen` takes an instance of a subclass.

    Between its inputs and those of the graph stand `process_inputs` and `process_outputs`, for those who run the
    graph without its code: `process_outputs(run(graph, *process_inputs(*args)))` is what the function gives.
    """

    def __init__(self):
        self._body_transformer = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        """The line with `def`, and others where the function needs them before its body.

        free_vars: texts of the graph's arguments; maybe_return_annotation: " -> type" or "".
        """
        if free_vars[:1] != ["self"]:
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args, *, repr_fn=repr):
        """The line with `return`. repr_fn: what writes an argument as Python."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args):
        """The graph's arguments, of those that the function takes."""
        return args

    def process_outputs(self, outputs):
        """What the function returns, of what the graph gives."""
        return outputs

    def additional_globals(self):
        """(name, value) of each global that the lines of this class need."""
        return []


class PyTreeCodeGen(CodeGen):
    """A function of nested arguments, whose graph has a placeholder for each leaf.

    Args:
        names: of the function's arguments.
        example: those arguments, as they are nested; leaves may be anything.
        results: the spec of what it returns where the graph gives the leaves of that in a tuple.
    """

    def __init__(self, names, example, results=None):
        super().__init__()
        self.names, self.example, self.results = list(names), tree_map(lambda leaf: 0, list(example)), results

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        first = super().gen_fn_def(list(self.names), maybe_return_annotation)
        given = [re.match(r"\w*", text)[0] for text in free_vars if text != "self"]
        return f"{first}\n    [{', '.join(given)}] = _leaves_of({', '.join(self.names)})"

    def generate_output(self, output_args, *, repr_fn=repr):
        text = super().generate_output(output_args, repr_fn=repr_fn)
        return text if self.results is None else f"return _of_leaves({text.removeprefix('return ')})"

    def process_outputs(self, outputs):
        return outputs if self.results is None else tree_unflatten(list(outputs), self.results)

    def process_inputs(self, *args):
        leaves, spec = tree_flatten(in_order(list(args), self.example))
        _, wanted = tree_flatten(self.example)
        if spec != wanted:
            raise TypeError(
                f"the graph was recorded with {', '.join(self.names)} nested as {wanted}, but got {spec}; record it "
                "for such arguments too"
            )
        return leaves

    def additional_globals(self):
        return [("_leaves_of", self.process_inputs), ("_of_leaves", self.process_outputs)]


def in_order(tree, example):
    """The tree with its dicts in the order of the example's where they have the same keys."""
    if type(tree) is dict and type(example) is dict and tree.keys() == example.keys():
        return {key: in_order(tree[key], part) for key, part in example.items()}
    if type(tree) in (tuple, list) and type(example) is type(tree) and len(tree) == len(example):
        return type(tree)(map(in_order, tree, example))
    return tree


def ending(codegen, output_args, text):
    """generate_output with `text` as the writer of arguments, also of a subclass that takes the arguments alone."""
    method = codegen.generate_output
    code = getattr(method, "__func__", method).__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "repr_fn" in names or code.co_flags & 8:  # **kwargs
        return method(output_args, repr_fn=text)
    return method(output_args)
