"""Random access control lists and questions, as lines for `Deciding.java`, and our answers to them.

A case is an authorizer, some ACLs, questions, sometimes ACLs that are added and removed, and questions again. Names come from a small
alphabet, so that prefixes nest and meet; so do principals, hosts and ranges.

Names do not begin with a character below `*`, such as `!`: Kafka's search does not end for some of those.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from barnabas.security.authorizer import StandardAuthorizer, parse_super_users
from barnabas.security.hosts import java_address, parse_range
from barnabas.security.principal import Principal

__all__ = ["answers", "lines", "ranges"]

_TYPES = [ResourceType.TOPIC] * 4 + [ResourceType.GROUP] * 2 + [*ResourceType][2:]
_OPERATIONS = [*AclOperation][2:]
_ASKED = _OPERATIONS[1:]
_LETTERS = "aab.-é😀"
_PRINCIPALS = ["User:a", "User:a", "User:b", "User:*", "User:*", "User:a:b", "Group:a", "User:CN=a,O=ü", "User:root"]
_ASKING = [
    ("User", "a"),
    ("User", "a"),
    ("User", "b"),
    ("User", "a:b"),
    ("Group", "a"),
    ("User", "CN=a,O=ü"),
    ("User", "root"),
]
_ADDRESSES = [
    "10.0.0.1",
    "10.0.1.255",
    "10.1.0.0",
    "192.168.7.9",
    "0.0.0.0",
    "255.255.255.255",
    "::1",
    "::",
    "2001:db8::7",
    "2001:db8:0:1::ff",
    "fe80::a:b",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "::ffff:10.0.0.1",
    "::10.0.0.1",
]


def _name(draw: random.Random) -> str:
    size = draw.choice((1, 1, 2, 2, 3, 3, 4, 6))
    name = "".join(draw.choices(_LETTERS, k=size))
    return "*" + name if draw.random() < 0.02 else name


def _range(draw: random.Random) -> str:
    address = draw.choice(_ADDRESSES)
    if draw.random() < 0.1:
        return f"{address}/{draw.choice((-1, 33, 64, 129, 'x', ''))}"
    if ":" in address:
        return f"{address}/{draw.choice((0, 1, 16, 32, 47, 63, 64, 65, 112, 127, 128))}"
    return f"{address}/{draw.choice((0, 1, 7, 8, 9, 16, 23, 24, 25, 30, 31, 32))}"


def _host(draw: random.Random) -> str:
    choice = draw.random()
    if choice < 0.45:
        return "*"
    if choice < 0.75:
        return _range(draw)
    address = draw.choice(_ADDRESSES)
    return java_address(address) if choice < 0.95 else address


def _acl(draw: random.Random) -> AclBinding:
    name = "*" if draw.random() < 0.2 else _name(draw)
    resource_type = draw.choice(_TYPES)
    if resource_type == ResourceType.CLUSTER:
        name = "kafka-cluster"
    return AclBinding(
        resource_type,
        name,
        draw.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        draw.choice(_PRINCIPALS),
        _host(draw),
        draw.choice(_OPERATIONS),
        Permission.DENY if draw.random() < 0.3 else Permission.ALLOW,
    )


def _line(*fields: object) -> str:
    return "\t".join(str(int(field)) if isinstance(field, int) else str(field) for field in fields)


def _add(acl_id: int, acl: AclBinding) -> str:
    return _line("A", acl_id, *acl)


def _questions(draw: random.Random, acls: list[AclBinding], count: int) -> Iterator[str]:
    for _ in range(count):
        near = draw.choice(acls) if acls and draw.random() < 0.7 else None
        resource_type = near.resource_type if near else draw.choice(_TYPES)
        name = near.resource_name + draw.choice(("", "a", "b")) if near and near.resource_name != "*" else _name(draw)
        operation, principal, host = draw.choice(_ASKED), draw.choice(_ASKING), draw.choice(_ADDRESSES)
        if draw.random() < 0.2:
            yield _line("T", operation, resource_type, *principal, host)
        else:
            yield _line("Q", operation, resource_type, name, *principal, host)


def lines(draw: random.Random, questions: int) -> Iterator[str]:
    """Yield the lines of cases with at least so many questions together."""
    asked = 0
    while asked < questions:
        yield _line("N", draw.choice(("", "User:root", "User:root;Group:a")), draw.choice(("true", "false")))
        # Kafka keeps a set of ACLs: two of one content cannot stand side by side.
        known = dict(enumerate(dict.fromkeys(_acl(draw) for _ in range(draw.choice((0, 1, 2, 4, 8, 16, 32))))))
        for acl_id, acl in known.items():
            yield _add(acl_id, acl)
        for _ in range(draw.choice((1, 1, 2))):
            yield from _questions(draw, [*known.values()], 16)
            asked += 16
            for acl_id in [acl_id for acl_id in known if draw.random() < 0.3]:
                del known[acl_id]
                yield _line("R", acl_id)
            new = _acl(draw)
            if new not in known.values():
                acl_id = max(known, default=0) + 1000
                known[acl_id] = new
                yield _add(acl_id, new)


def ranges(draw: random.Random, count: int) -> Iterator[str]:
    """Yield lines that ask whether a host is a range."""
    broken = (
        "",
        "/",
        ":/",
        "::/",
        "1.2.3/8",
        "1.2.3.4.5/8",
        "::g/1",
        "[::1]/64",
        "[::1/64",
        "00001::/4",
        ":::/8",
        "1:/8",
        "a/8",
    )
    for text in (*broken, *(_range(draw) for _ in range(count))):
        yield _line("V", text)


def answers(given: Iterator[str] | list[str]) -> Iterator[str]:
    """Yield our answers to the lines that ask, in the form of the Java program."""
    authorizer = StandardAuthorizer()
    for line in given:
        kind, *fields = line.split("\t")
        if kind == "N":
            authorizer = StandardAuthorizer(parse_super_users(fields[0]), fields[1] == "true")
            authorizer.replace({})
        elif kind == "A":
            acl_id, resource_type, name, pattern, principal, host, operation, permission = fields
            acl = AclBinding(int(resource_type), name, int(pattern), principal, host, int(operation), int(permission))
            authorizer.add(acl_id.encode(), acl)
        elif kind == "R":
            authorizer.remove(fields[0].encode())
        elif kind == "Q":
            asking, host = Principal(fields[3], fields[4]), java_address(fields[5])
            found = authorizer.explain(asking, host, int(fields[0]), int(fields[1]), fields[2])
            yield f"{host}\t{_yes(found.is_allowed)}\t{found.rule}"
        elif kind == "T":
            asking, host = Principal(fields[2], fields[3]), java_address(fields[4])
            yield _yes(authorizer.is_allowed_by_type(asking, host, int(fields[0]), int(fields[1])))
        else:
            yield _fault(fields[0])


def _fault(host: str) -> str:
    try:
        parse_range(host)
    except ValueError as error:
        return str(error)
    return "ok"


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
