"""Every row of rights, on a node without sockets: who lacks a right gets its error, and who has all of them gets none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.authorization.answers import Authorized, furnish
from tests.api.authorization.rows import ROWS, Row, codes


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authorized]:
    node = Authorized(tmp_path_factory.mktemp("authorized"))
    furnish(node)
    node.allow([acl for row in ROWS for mode in row.modes() for acl in row.acls(mode)])
    yield node
    node.close()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rights(node: Authorized, row: Row) -> None:
    answers = {mode: node.play(row, mode) for mode in row.modes()}
    for mode, answer in answers.items():
        lacks = row.lacks(mode)
        if lacks is not None and lacks.code >= 0:
            assert set(codes(answer)) == {lacks.code}, (mode, answer)
        elif lacks is None:
            assert set(codes(answer)) == set(), (mode, answer)
        else:
            assert answer != answers["super"], mode
