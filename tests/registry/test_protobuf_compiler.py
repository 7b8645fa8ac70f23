"""Protobuf: what is one schema, and what a text that is not valid gets."""

from __future__ import annotations

import pytest

from barnabas.registry.protobuf_compiler import InvalidProtobuf, compile_protobuf

HEAD = 'syntax = "proto3";'


def test_layout_and_comments_make_no_other_schema() -> None:
    plain = compile_protobuf(f"{HEAD} message A {{ int32 x = 1; }}", {})
    other = compile_protobuf(f"{HEAD}\n// words\nmessage A {{\n  int32 x = 1; // more\n}}", {})
    assert plain.content == other.content
    assert plain.content != compile_protobuf(f"{HEAD} message A {{ int32 y = 1; }}", {}).content


def test_imports() -> None:
    needed = {
        "b/c.proto": f"{HEAD} package b; message C {{ }}",
        "a.proto": f'{HEAD} import "b/c.proto"; message A {{ b.C c = 1; }}',
    }
    compile_protobuf(f'{HEAD} import "a.proto"; message R {{ A a = 1; }}', needed)
    with pytest.raises(InvalidProtobuf, match=r"b/c\.proto"):
        compile_protobuf(f'{HEAD} import "b/c.proto"; message R {{ }}', {})


@pytest.mark.parametrize(
    ("text", "needed", "why"),
    [
        (" ", {}, "it is empty"),
        (f"{HEAD} message A {{ int32 x = ; }}", {}, "^line 1:42: Expected field number"),
        (f"{HEAD} message A {{ B b = 1; }}", {}, '"B" is not defined'),
        ("no schema at all", {}, "Expected top-level statement"),
        (HEAD, {"../out.proto": HEAD}, "is not the path of an import"),
        (HEAD, {"/out.proto": HEAD}, "is not the path of an import"),
        (HEAD, {"": HEAD}, "is not the path of an import"),
        (HEAD, {"a" * 300: HEAD}, "is not the path of an import"),
    ],
)
def test_not_valid(text: str, needed: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidProtobuf, match=why):
        compile_protobuf(text, needed)
