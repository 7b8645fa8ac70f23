"""The rights of `api.authorization.quotas`, row by row, on a node without sockets."""

from __future__ import annotations

import pytest

from tests.api.authorization.answers import Authorized, check_row, rows_of
from tests.api.authorization.rows import Row


@pytest.mark.parametrize("row", rows_of(48, 49), ids=lambda row: row.name)
def test_rights(authorized: Authorized, row: Row) -> None:
    check_row(authorized, row)
