"""List the small bugs that can be planted in a module: mutmut's mutations, without those that no test should notice.

Nothing is planted in annotations, type aliases, protocols, decorators, assertions, log messages, other prose, names of enum
members, and `__repr__`. No constant becomes None, and None no string: the type checker rejects that.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

NOT_MUTATED = (
    m.Annotation() | m.Decorator() | m.Assert() | m.Import() | m.ImportFrom() | m.Expr(m.SimpleString())
    | m.If(test=m.Name("TYPE_CHECKING"))
    | m.FunctionDef(name=m.Name("__repr__"))
    | m.ClassDef(bases=[m.ZeroOrMore(), m.Arg(m.Name("Protocol")), m.ZeroOrMore()])
    | m.Assign(targets=[m.AssignTarget(m.Name(m.MatchRegex("_?[A-Z][a-z].*")))])
    | m.Call(func=m.Attribute(value=m.Name("logger") | m.Attribute(attr=m.Name("logger"))))
    | m.Call(func=m.Name("cast") | m.Name("isinstance"))
    | m.Assign(value=m.Call(func=m.Name("TypeVar")))
    | m.Assign(targets=[m.AssignTarget(m.Name("logger") | m.Name("__slots__") | m.Name("__all__"))])
    | m.Arg(keyword=m.Name("strict") | m.Name("encoding"))
)  # fmt: skip
ENUM = m.ClassDef(bases=[m.Arg(m.Name("Enum") | m.Attribute(attr=m.Name("Enum")))])
NUMBER = m.Integer() | m.Float()
CONSTANT = (
    NUMBER | m.SimpleString() | m.UnaryOperation(expression=NUMBER) | m.Name(m.MatchRegex("[A-Z]+[A-Z_]*|True|False"))
)


@dataclass(frozen=True)
class Mutation:
    """One small bug.

    `first` and `last` are the lines of its statement. `at_import`: the statement runs when the module is imported.
    """

    path: Path
    where: str
    first: int
    last: int
    at_import: bool
    tree: cst.Module
    original: cst.CSTNode
    mutated: cst.CSTNode

    @cached_property
    def source(self) -> str:
        """The source of the module with this bug."""
        return self.tree.deep_replace(self.original, self.mutated).code  # type: ignore[union-attr]

    @cached_property
    def name(self) -> tuple[str, ...]:
        """Where it is, and the changed lines without their indentation."""
        diff = difflib.unified_diff(self.tree.code.splitlines(), self.source.splitlines(), n=0, lineterm="")
        changed = [line[0] + line[1:].strip() for line in list(diff)[2:] if line[0] in "+-"]
        return (f"{self.path.relative_to(Path.cwd())} {self.where}", *changed)

    def new_code(self) -> dict[CodeType, CodeType]:
        """Return the new code of each function that changes, by its old code.

        Raises:
            SyntaxError: this mutation makes no valid module.
        """
        codes = [compile(source, str(self.path), "exec", dont_inherit=True) for source in (self.tree.code, self.source)]
        pairs = zip(_functions(codes[0]), _functions(codes[1]), strict=not self.at_import)
        return {old: new for old, new in pairs if old != new}


def _functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of each function that is not nested in another one."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from [constant] if constant.co_flags & 0x1 else _functions(constant)  # 0x1 is not set in a class body


def mutations(path: Path) -> list[Mutation]:
    """Return the mutations of one module in the order of its lines."""
    wrapper = MetadataWrapper(cst.parse_module(path.read_text()))
    collector = _Collector(path, wrapper.module)
    wrapper.visit(collector)
    return collector.found


class _Collector(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, path: Path, tree: cst.Module) -> None:
        super().__init__()
        self.path, self.tree = path, tree
        self.found: list[Mutation] = []
        self._parents: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self._parents.append(node)
        in_enum = isinstance(node, cst.SimpleString) and any(m.matches(parent, ENUM) for parent in self._parents)
        if m.matches(node, NOT_MUTATED) or in_enum or _is_prose(node):
            return False
        self.found += [self._mutation(node, mutated) for mutated in _mutated(node)]
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self._parents.pop()

    def _mutation(self, node: cst.CSTNode, mutated: cst.CSTNode) -> Mutation:
        names = [parent.name.value for parent in self._parents if isinstance(parent, cst.FunctionDef | cst.ClassDef)]
        pairs = itertools.pairwise(self._parents)
        in_function = any(isinstance(parent, cst.FunctionDef) and child is parent.body for parent, child in pairs)
        statement = next((parent for parent in self._parents if isinstance(parent, cst.BaseSmallStatement)), node)
        lines = self.get_metadata(PositionProvider, statement)
        where = ".".join(names) or "module"
        return Mutation(self.path, where, lines.start.line, lines.end.line, not in_function, self.tree, node, mutated)


def _mutated(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for kind, operator in mutation_operators:
        for mutated in operator(node) if isinstance(node, kind) else ():
            before, after = node, mutated
            if isinstance(node, cst.Call) and isinstance(mutated, cst.Call):
                pairs = itertools.zip_longest(node.args, mutated.args)
                before, after = next((pair for pair in pairs if pair[0] is not pair[1]), (node, mutated))
                if m.matches(before, NOT_MUTATED):
                    continue
            value = getattr(before, "value", before)
            to_none = m.matches(getattr(after, "value", after) or after, m.Name("None"))
            from_none = isinstance(after, cst.Assign | cst.AnnAssign) and m.matches(value, m.Name("None"))
            if not _is_prose(value) and not (to_none and m.matches(value, CONSTANT)) and not from_none:
                yield mutated


def _is_prose(node: cst.CSTNode) -> bool:
    """Whether the node is a string for people: its text has a space."""
    parts = m.findall(node, m.SimpleString() | m.FormattedStringText()) if isinstance(node, cst.BaseString) else ()
    return any(" " in part.value for part in parts)  # type: ignore[attr-defined]
