"""Lists in pages."""

import pytest

from barnabas.console.listing import page_of


@pytest.mark.parametrize(
    ("wanted", "shown", "page"),
    [(1, [0, 1], 1), (2, [2, 3], 2), (3, [4], 3), (0, [0, 1], 1), (99, [4], 3)],
)
def test_pages(wanted: int, shown: list[int], page: int) -> None:
    found, paging = page_of(range(5), wanted, lambda number: f"?page={number}", rows=2)
    assert list(found) == shown
    assert (paging.page, paging.pages, paging.total) == (page, 3, 5)
    assert paging.previous == (None if page == 1 else f"?page={page - 1}")
    assert paging.following == (None if page == 3 else f"?page={page + 1}")


def test_nothing_is_one_page() -> None:
    nothing: list[int] = []
    found, paging = page_of(nothing, 1, str)
    assert (list(found), paging.pages, paging.previous, paging.following) == ([], 1, None, None)
