"""Tokens, and previews that are carried out once."""

from __future__ import annotations

from barnabas.console.form_tokens import PREVIEW_S, FormTokens, Previews, Taken, hash_of


def test_a_token_is_of_one_visitor_and_one_process() -> None:
    tokens = FormTokens()
    token = tokens.of("alice's cookie")
    assert tokens.is_valid("alice's cookie", token)
    assert not tokens.is_valid("bob's cookie", token)
    assert not FormTokens().is_valid("alice's cookie", token)
    for wrong in ("", "é", token[:-1], "\ud800"):
        assert not tokens.is_valid("alice's cookie", wrong)
    assert token not in repr(tokens)


def test_a_preview_is_taken_once_and_ends() -> None:
    now = [0.0]
    previews = Previews(lambda: now[0])
    first, second, third = (previews.show(b"about") for _ in range(3))
    assert [previews.take(first, b"about") for _ in range(2)] == [Taken.SAME, Taken.GONE]
    assert [previews.take(second, each) for each in (b"other", b"about")] == [Taken.OTHER, Taken.GONE]
    now[0] = PREVIEW_S
    assert previews.take(third, b"about") is Taken.GONE
    assert previews.take("", b"") is Taken.GONE


def test_a_hash_is_of_everything() -> None:
    words = ("alice", "local", "topic-delete", {"name": "a"}, [1])
    changes = (
        ("bob",),
        ("alice", "other"),
        ("alice", "local", "x"),
        ("alice", "local", "topic-delete", {"name": "b"}),
        (*words[:4], [2]),
    )
    others = {hash_of(*(*each, *words[len(each) :])) for each in changes}  # type: ignore[arg-type]
    assert len(others | {hash_of(*words)}) == len(changes) + 1
