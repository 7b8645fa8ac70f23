"""The layout of a claim, and what it must not name."""

from __future__ import annotations

import json

import pytest

from barnabas.claims.claim import (
    HEADER,
    Claim,
    NotAClaim,
    digest,
    is_payload_name,
    marked,
    marker_of,
    parse_claim,
    prefix_of,
    without_mark,
)

SHA = digest(b"payload")
CLAIM = Claim(f"cluster/videos/{SHA}", 7, SHA)
MARK = [(HEADER, b"1")]


def changed(**fields: object) -> bytes:
    return json.dumps(json.loads(CLAIM.encoded()) | fields).encode()


def test_the_value_is_this() -> None:
    wanted = f'{{"claim":1,"path":"cluster/videos/{SHA}","size":7,"sha256":"{SHA}"}}'
    assert CLAIM.encoded() == wanted.encode()
    assert parse_claim(MARK, CLAIM.encoded()) == CLAIM


def test_only_the_header_makes_a_claim() -> None:
    assert parse_claim(None, CLAIM.encoded()) is None
    assert parse_claim([("other", b"1")], CLAIM.encoded()) is None
    assert parse_claim(MARK, None) is None


@pytest.mark.parametrize(
    "path",
    [
        f"../videos/{SHA}", f"cluster/../{SHA}", f"./videos/{SHA}", f"/etc/videos/{SHA}", f"cluster/videos/../{SHA}",
        f"s3://other/videos/{SHA}", f"file:///videos/{SHA}", f"cluster//{SHA}", f"cluster/videos/{SHA}\n", "cluster/videos/passwd",
        f"cluster/videos/condemned/{SHA}", f"cluster\\videos/{SHA}", f"cluster/%2e%2e/{SHA}", f"cluster/videos/{SHA}/", "",
    ],
)  # fmt: skip
def test_a_path_outside_of_the_store_is_refused(path: str) -> None:
    with pytest.raises(NotAClaim, match="is not a payload's path in the store"):
        parse_claim(MARK, changed(path=path))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\xff", "its value is not JSON"),
        (b"{", "its value is not JSON"),
        (b"[]", "its value does not have the fields of format 1"),
        (changed(claim=2), "its value does not have the fields of format 1"),
        (changed(size=-1), "its value does not have the fields of format 1"),
        (changed(size="7"), "its value does not have the fields of format 1"),
        (changed(sha256="0" * 64), "its path and its SHA-256 are of different payloads"),
    ],
)
def test_a_value_that_is_no_claim(value: bytes, reason: str) -> None:
    with pytest.raises(NotAClaim, match=reason) as found:
        parse_claim(MARK, value)
    assert not found.value.is_newer


@pytest.mark.parametrize(("mark", "is_newer"), [(b"2", True), (b"x", False), (None, False), (b"", False)])
def test_a_format_that_is_not_known(mark: bytes | None, is_newer: bool) -> None:
    with pytest.raises(NotAClaim, match="and this barnabas knows 1") as found:
        parse_claim([(HEADER, mark)], CLAIM.encoded())
    assert found.value.is_newer == is_newer


def test_headers_are_marked_once() -> None:
    assert marked({"a": "b"}) == [("a", "b"), (HEADER, b"1")]
    assert without_mark(marked([("a", b"b")])) == [("a", b"b")]
    with pytest.raises(ValueError, match="the header __claim marks a claim"):
        marked(MARK)


def test_paths() -> None:
    assert prefix_of("c-1_x", "a.b") == "c-1_x/a.b"
    assert marker_of(f"c/t/{SHA}-1") == f"c/t/condemned/{SHA}-1"
    assert is_payload_name(SHA)
    assert is_payload_name(f"{SHA}-12")
    assert not is_payload_name(f"{SHA}-x")
    for cluster, topic in (("..", "t"), ("c", "."), ("a/b", "t"), ("c", ""), ("c c", "t")):
        with pytest.raises(ValueError, match="cannot be a part of a payload's path"):
            prefix_of(cluster, topic)
