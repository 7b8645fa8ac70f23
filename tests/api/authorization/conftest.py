"""One node for all rows of rights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.authorization.answers import Authorized, furnish
from tests.api.authorization.rows import ROWS


@pytest.fixture(scope="session")
def authorized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authorized]:
    node = Authorized(tmp_path_factory.mktemp("authorized"))
    furnish(node)
    node.allow([acl for row in ROWS for mode in row.modes() for acl in row.acls(mode)])
    yield node
    node.close()
