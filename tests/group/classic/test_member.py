"""A member: votes, changes, and when it needs heartbeats."""

from __future__ import annotations

from tests.group.classic.test_group import member


def test_votes_for_its_first_candidate() -> None:
    one = member("a", {"range": b"", "roundrobin": b"", "sticky": b""})
    assert one.vote({"sticky", "roundrobin"}) == "roundrobin"


def test_changes_of_protocols() -> None:
    one = member("a", {"range": b"1", "sticky": b"2"})
    assert one.matches({"range": b"1", "sticky": b"2"})
    assert not one.matches({"sticky": b"2", "range": b"1"}), "the order is the preference"
    assert not one.matches({"range": b"1", "sticky": b"3"})
    assert not one.matches({"range": b"1"})


def test_heartbeats_are_not_needed_while_it_waits() -> None:
    one = member("a")
    assert not one.has_satisfied_heartbeat
    one.awaiting_sync = print
    assert one.has_satisfied_heartbeat
    one.awaiting_sync, one.awaiting_join = None, print
    assert one.has_satisfied_heartbeat
    one.is_new = True
    assert not one.has_satisfied_heartbeat, "a new member may be gone before its first answer"


def test_description() -> None:
    one = member("a", {"range": b"m"}, group_instance_id="i", assignment=b"x")
    full, short = one.describe("range"), one.describe(None)
    assert (full.member_metadata, full.member_assignment, full.group_instance_id) == (b"m", b"x", "i")
    assert (short.member_metadata, short.member_assignment, short.client_host) == (b"", b"", "/h")
