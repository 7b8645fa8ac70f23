"""Names of topics."""

from __future__ import annotations

import pytest

from barnabas.protocol import topic_names


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "__consumer_offsets", "..."])
def test_legal(name: str) -> None:
    assert topic_names.fault(name) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ä", "'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_illegal_in_kafkas_words(name: str, why: str) -> None:
    assert topic_names.fault(name) == f"Topic name is invalid: {why}"


def test_dot_and_underscore_collide() -> None:
    assert topic_names.collision("a.b", ["a_b", "c"]) == "a_b"
    assert topic_names.collision("a.b", ["ab", "a.c"]) is None
    assert topic_names.collision("plain", ["plain"]) is None
    assert topic_names.collision("a.b_c", {"a_b.c", "a.b.c"}) == "a.b.c"
    many = ".".join("abcdefghij")
    assert topic_names.collision(many, [many.replace(".", "_"), "x"]) == many.replace(".", "_")


def test_internal_topics() -> None:
    assert topic_names.is_internal("__consumer_offsets")
    assert not topic_names.is_internal("__mine")
