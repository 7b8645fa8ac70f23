"""The rights of `api.authorization.checks`, row by row, on a node without sockets."""

from __future__ import annotations

import pytest

from tests.api.authorization.answers import Authorized, check_row, rows_of
from tests.api.authorization.rows import Row


@pytest.mark.parametrize(
    "row",
    rows_of(29, 30, 31, 34, 35, 43, 45, 46, 50, 51, 55, 57, 64, 74, 80, 81, 83, 84, 85, 86, 87),
    ids=lambda row: row.name,
)
def test_rights(authorized: Authorized, row: Row) -> None:
    check_row(authorized, row)
