"""A short turn is short everywhere."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.short_turns import LEAST

SOURCE = Path(__file__).parents[1] / "src"


def test_every_module_that_imports_the_constant_is_known() -> None:
    importing = {"barnabas.turns"}
    naming = [path for path in SOURCE.rglob("*.py") if "barnabas.turns" in path.read_text()]
    for path in naming:
        for node in ast.walk(ast.parse(path.read_text())):
            is_of_turns = isinstance(node, ast.ImportFrom) and node.module == "barnabas.turns"
            if is_of_turns and any(each.name == "TURN" for each in node.names):
                importing.add(".".join(path.relative_to(SOURCE).with_suffix("").parts))
    assert importing == LEAST.keys()
