"""Mutants of a source file: small changes of its meaning, found in the syntax tree and made in the text."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
# The neighbour that differs at the boundary alone, and the opposite.
COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.GtE],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
RENAMED = {
    "mean": "sum",
    "sum": "mean",
    "amax": "amin",
    "max": "min",
    "min": "max",
    "argmax": "argmin",
    "rsqrt": "sqrt",
    "var": "std",
    "softmax": "log_softmax",
}
# Methods of a tensor that can be left out: `x.square()` becomes `x`.
DROPPED = {
    *("abs", "clamp_min", "clone", "detach", "exp", "exp_", "log", "neg", "relu", "relu_", "sigmoid", "softmax"),
    *("sqrt", "rsqrt", "square", "tanh", "float", "double", "contiguous", "transpose", "flatten", "repeat_interleave"),
}
MODULES = {"torch", "math", "F"}
# Calls whose arguments are not exchanged: nothing would change, or nothing would run.
UNORDERED = {"isinstance", "getattr", "hasattr", "zip", "map", "max", "min"}
TYPES = {"Literal", "Callable", "ClassVar", "dict", "tuple", "type"}


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    function: str
    line: int
    before: str
    """The lines that change, in one line."""
    after: str
    source: str
    """The whole file with the change."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is, wherever in the file it has moved."""
        return self.file, self.function, self.before, self.after


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """Every mutant of `root / file`, in the order of its lines; each key once."""
    source = (root / file).read_text()
    text = _Text(source)
    found: dict[tuple[str, str, str, str], Mutant] = {}
    for function, node, replacement in _changes(ast.parse(source), ""):
        changed = text.replace(node, replacement)
        before, after = text.lines(node), _Text(changed).lines_from(node, len(source.split("\n")), changed)
        mutant = Mutant(file, function, node.lineno, before, after, changed)
        if before != after:
            found.setdefault(mutant.key, mutant)
    return sorted(found.values(), key=lambda mutant: mutant.line)


def _changes(node: ast.AST, function: str) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """(function, node, new text) for every change below `node`. What is no mathematics is passed over."""
    if isinstance(node, ast.Expr) and ast.unparse(node).startswith("super().__init__("):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: a guard
        return
    if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in TYPES:
        return
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    if isinstance(node, ast.expr):
        for replacement in _expressions(node):
            if ast.dump(replacement) == ast.dump(node):  # two equal arguments exchanged
                continue
            # A sum in a product needs its parentheses; elsewhere they do no harm.
            yield function, node, f"({ast.unparse(replacement)})"
    elif isinstance(node, ast.stmt):
        for text in _statements(node):
            yield function, node, text
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
        yield function, node.test, f"(not {ast.unparse(node.test)})"
    for child in _children(node):
        yield from _changes(child, function)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    skipped: set[str] = {"annotation", "returns", "decorator_list", "type_params", "bases"}
    for name, value in ast.iter_fields(node):
        if name in skipped:
            continue
        for child in value if isinstance(value, list) else [value]:
            docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not docstring:
                yield child


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.BinOp(left, operator, right):
            if type(operator) in OPERATORS:
                yield ast.BinOp(left, OPERATORS[type(operator)](), right)
            if isinstance(operator, ast.Mult):
                yield left
                yield right
            if isinstance(operator, ast.Div | ast.Pow | ast.MatMult):
                yield left
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            yield operand
        case ast.Compare(left, [operator], rights):
            for other in COMPARISONS[type(operator)]:
                yield ast.Compare(left, [other()], rights)
        case ast.Compare(left, [first, *rest], rights):
            for other in COMPARISONS[type(first)]:
                yield ast.Compare(left, [other(), *rest], rights)
            for other in COMPARISONS[type(rest[0])]:
                yield ast.Compare(left, [first, other(), *rest[1:]], rights)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.And() if isinstance(operator, ast.Or) else ast.Or(), values)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(float(value)):
            yield ast.Constant(value * 2 if value else 1.0)
        case ast.Attribute(value, "mT"):
            yield value
        case ast.Call():
            yield from _calls(node)
        case ast.Subscript(value, index, context):
            yield from (ast.Subscript(value, other, context) for other in _exchanged_slices(index))
        case ast.Tuple([first, second], ast.Load()) if not isinstance(first, ast.Slice):
            yield ast.Tuple([second, first], ast.Load())


def _calls(node: ast.Call) -> Iterator[ast.expr]:
    """A call of a neighbour, of two exchanged arguments, or none."""
    match node.func:
        case ast.Attribute(value, name, context):
            if name in RENAMED and not (isinstance(value, ast.Name) and value.id == "math"):
                yield ast.Call(ast.Attribute(value, RENAMED[name], context), node.args, node.keywords)
            if name in DROPPED and not (isinstance(value, ast.Name) and value.id in MODULES):
                yield value
        case ast.Name("max" | "min" as name):
            yield ast.Call(ast.Name("min" if name == "max" else "max", ast.Load()), node.args, node.keywords)
    plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
    named = isinstance(node.func, ast.Name) and node.func.id in UNORDERED
    same = len(node.args) >= 2 and ast.dump(node.args[0]) == ast.dump(node.args[1])
    if plain and len(node.args) >= 2 and not (named or same or isinstance(node.args[0], ast.Constant)):
        yield ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)


def _exchanged_slices(index: ast.expr) -> Iterator[ast.expr]:
    """`x[:B]` and `x[B:]` exchanged: one frame or view for the other."""
    if isinstance(index, ast.Slice) and index.step is None and (index.lower is None) != (index.upper is None):
        yield ast.Slice(index.upper, index.lower)
    if isinstance(index, ast.Tuple):
        for i, each in enumerate(index.elts):
            for other in _exchanged_slices(each):
                elements = copy.copy(index.elts)
                elements[i] = other
                yield ast.Tuple(elements, ast.Load())


def _statements(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Assign([ast.Tuple([first, second])], value):
            yield f"{ast.unparse(second)}, {ast.unparse(first)} = {ast.unparse(value)}"
        case ast.AugAssign(target, operator, value):
            yield "pass"
            if type(operator) in OPERATORS:
                yield ast.unparse(ast.AugAssign(target, OPERATORS[type(operator)](), value))
        case ast.Expr(ast.Call()):
            yield "pass"


class _Text:
    """Source text with the positions that the syntax tree gives: lines from 1, columns in UTF-8 bytes."""

    def __init__(self, source: str) -> None:
        self.rows = source.split("\n")

    def replace(self, node: ast.expr | ast.stmt, text: str) -> str:
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        head = self.rows[first].encode()[: node.col_offset].decode()
        tail = self.rows[last].encode()[node.end_col_offset :].decode()
        return "\n".join([*self.rows[:first], head + text + tail, *self.rows[last + 1 :]])

    def lines(self, node: ast.expr | ast.stmt) -> str:
        return _joined(self.rows[node.lineno - 1 : node.end_lineno])

    def lines_from(self, node: ast.expr | ast.stmt, num_rows_before: int, changed: str) -> str:
        """The same lines after the change, which may have joined some."""
        removed = num_rows_before - len(changed.split("\n"))
        return _joined(self.rows[node.lineno - 1 : (node.end_lineno or node.lineno) - removed])


def _joined(rows: list[str]) -> str:
    return " ".join(row.strip() for row in rows)
