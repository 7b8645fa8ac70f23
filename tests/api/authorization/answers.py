"""The rows of `tests.api.authorization.rows`, played on a node without sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas.protocol import messages as m
from barnabas.security.acls import AclBinding
from barnabas.security.principal import Principal
from tests.api.authorization.rows import ROWS, G, Row, T, X, codes
from tests.api.served_node import Serving

SETTINGS: dict[str, Any] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


class Authorized(Serving):
    """A node with an authorizer; its client is who the test says."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, **SETTINGS, **settings)
        assert self.server.services.authorizer is not None
        self.authorizer = self.server.services.authorizer
        self.log_in("admin")

    def log_in(self, user: str) -> None:
        self.connection.principal = Principal("User", user)

    def allow(self, acls: list[AclBinding]) -> None:
        """Give rights, as records of the metadata would."""
        for acl in acls:
            self.authorizer.add(str(acl).encode(), acl)

    def play(self, row: Row, mode: str) -> Any:
        """Return the answer to the user of a mode."""
        self.log_in(row.user(mode))
        return self.ask(row.make(mode), row.version)


def furnish(node: Any) -> None:
    """Make what the rows ask about; `node` has `ask(request, version)` and `create_topic`, as an administrator."""
    node.create_topic(T, 2)
    keys = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[G])
    while node.ask(keys, 4).coordinators[0].error_code:
        pass
    keys = m.FindCoordinatorRequest(key_type=1, coordinator_keys=[X])
    while node.ask(keys, 4).coordinators[0].error_code:
        pass
    commit = next(row for row in ROWS if row.name == "offset-commit").make("")
    while node.ask(commit, 9).topics[0].partitions[0].error_code:
        pass
    begin = m.InitProducerIdRequest(transactional_id=X, transaction_timeout_ms=60_000)
    while node.ask(begin, 4).error_code:
        pass


def rows_of(*keys: int) -> list[Row]:
    """Return the rows of some APIs."""
    return [row for row in ROWS if row.make("exact").API_KEY in keys]


def check_row(node: Authorized, row: Row) -> None:
    """Check that a user without a right gets its error, and one with all of them none."""
    answers = {mode: node.play(row, mode) for mode in row.modes()}
    for mode, answer in answers.items():
        lacks = row.lacks(mode)
        if lacks is not None and lacks.code >= 0:
            assert set(codes(answer)) == {lacks.code}, (mode, answer)
        elif lacks is None:
            assert set(codes(answer)) == set(), (mode, answer)
        else:
            assert answer != answers["super"], mode
