"""docs/reference.md is what the docstrings say now, and has everything that is exported."""

from __future__ import annotations

import re

import pytest
import write_reference

import barnabas
from barnabas import retries, spark
from barnabas.client import admin

PAGE = write_reference.PAGE.read_text()
HEADINGS = set(re.findall(r"^### (\S+)$", PAGE, re.MULTILINE))


def test_the_page_is_up_to_date() -> None:
    assert write_reference.page() == PAGE, "run make docs"


@pytest.mark.parametrize("package", [barnabas, retries, spark, admin], ids=lambda package: package.__name__)
def test_what_is_exported_has_its_place(package: object) -> None:
    prefix = "" if package is admin else f"{package.__name__}."  # type: ignore[attr-defined]
    exported = set(package.__all__)  # type: ignore[attr-defined]
    constants = {"EARLIEST", "LATEST", "MAX_TIMESTAMP", "ConfigSource", "ResourceType"}
    assert {name for name in exported - constants if f"{prefix}{name}" not in HEADINGS} == set()


def test_every_method_of_admin_is_described() -> None:
    methods = {name for name in vars(admin.Admin) if not name.startswith("_")}
    assert {name for name in methods if f"#### Admin.{name}\n" not in PAGE} == set()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("One line.", "One line."),
        (
            "One.\n\nArgs:\n    a, b: first\n        and more.\n    *rest: others.\n\nReturns:\n    A thing,\n    or None.\n\nLast.",
            "One.\n\n*Args*\n\n- `a`, `b`: first and more.\n- `*rest`: others.\n\n*Returns*\n\nA thing, or None.\n\nLast.",
        ),
        ("One.\n\n    code()\n\nRaises:\n    ValueError: no.", "One.\n\n    code()\n\n*Raises*\n\n- `ValueError`: no."),
    ],
)
def test_a_docstring_becomes_markdown(text: str, shown: str) -> None:
    assert write_reference.prose(text) == shown


def test_what_has_no_docstring_is_named() -> None:
    from ast import ClassDef, parse

    (made,) = parse("class Silent:\n    pass").body
    assert isinstance(made, ClassDef)
    with pytest.raises(LookupError, match="Silent has no docstring"):
        write_reference.docstring(made)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("def f(): ...", "f()"),
        (
            "def f(self, a: int=1, *, b: dict[str, int]={'c': 1}) -> None: ...",
            "f(a: int = 1, *, b: dict[str, int] = {'c': 1}) -> None",
        ),
        ("def f(self, a='x,y'): ...", "f(a='x,y')"),
    ],
)
def test_a_signature_is_what_a_caller_writes(source: str, shown: str) -> None:
    from ast import FunctionDef, parse

    (made,) = parse(source).body
    assert isinstance(made, FunctionDef)
    assert write_reference.signature("f", made, left_out=int("self" in source)) == shown
