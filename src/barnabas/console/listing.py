"""Lists that are cut into pages on the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from barnabas.console.page import Paging

T = TypeVar("T")

ROWS_OF_A_PAGE = 50


def page_of(
    things: Sequence[T], wanted: int, link: Callable[[int], str], rows: int = ROWS_OF_A_PAGE
) -> tuple[Sequence[T], Paging]:
    """Return the things on one page of a list, and where that page stands.

    Args:
        wanted: the number of the page, from 1; the nearest page if there is no such one.
        link: returns the address of a page.
    """
    pages = max(1, -(-len(things) // rows))
    page = min(max(wanted, 1), pages)
    shown = things[(page - 1) * rows : page * rows]
    previous = link(page - 1) if page > 1 else None
    following = link(page + 1) if page < pages else None
    return shown, Paging(page, pages, len(things), previous, following)
