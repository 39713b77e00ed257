"""The parts of a file whose changes a test could detect. These parts have no behavior to test:

- annotations, `__repr__` and `__str__`
- raised errors: their messages, and how they are put together
- defaults and bounds of settings (fields of classes): a test could only repeat the number
- `@abstractmethod`, `frozen=True`, `/` and `*` among parameters, which protect the programmer
"""

import ast


def behavior(source: str) -> str:
    """Return a file's syntax tree without the parts that have no behavior to test."""
    return ast.dump(_Bare().visit(ast.parse(source)))


class _Bare(ast.NodeTransformer):
    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.Raise()

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        self.generic_visit(node)
        names = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        defaults = [*node.defaults, *filter(None, node.kw_defaults)]
        return ast.arguments([], names, node.vararg, [], [], node.kwarg, defaults)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.AnnAssign(node.target, ast.Constant(None), node.value, node.simple)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        if node.name in {"__repr__", "__str__"}:
            return None
        self.generic_visit(node)
        node.returns = None
        node.decorator_list = [d for d in node.decorator_list if ast.unparse(d) != "abstractmethod"]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
        for field in fields:
            field.value = None
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        self.generic_visit(node)
        return None if node.arg == "frozen" else node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        self.generic_visit(node)
        return None if ast.unparse(node.test) in {"TYPE_CHECKING", "not TYPE_CHECKING"} else node
