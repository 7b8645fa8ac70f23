from __future__ import annotations

from barnabas.metadata.list_changes import changed_list


def test_appending() -> None:
    assert changed_list(None, "a", is_append=True) == "a"
    assert changed_list("a, b", "b,c,c", is_append=True) == "a,b,c"
    assert changed_list("a", None, is_append=True) == "a"


def test_subtracting() -> None:
    assert changed_list("a,b,c", "b, d", is_append=False) == "a,c"
    assert changed_list("a", "a", is_append=False) == ""
    assert changed_list(None, "a", is_append=False) == ""
