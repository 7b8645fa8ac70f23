"""Users and ACLs on their way to a node."""

from __future__ import annotations

import json

from barnabas.embedded.users_and_acls import UsersAndAcls
from barnabas.security.acl_words import parse_acl


def test_a_node_reads_what_a_cluster_has_written() -> None:
    acls = parse_acl("--allow-principal User:alice --operation read --topic orders")
    made = UsersAndAcls([("alice", 2, b"\0salt", b"\xffsalted")], acls)
    assert UsersAndAcls.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert "salted" not in repr(made)
