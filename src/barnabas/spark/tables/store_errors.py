"""A store that refuses a request, in one sentence: a bucket that is absent, keys that are wrong, a server that is away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

_CODE = re.compile(r"<Code>(\w+)</Code>|AWS Error (\w+)")
"""As the store sends it, and as Arrow's client for S3 words it."""
_COLOURS_AND_ARROWS = re.compile(r"\x1b\[\d+m|↳")


@contextmanager
def reached(name: str) -> Iterator[None]:
    """Turn what a store refuses into one sentence.

    Args:
        name: what errors call the table.

    Raises:
        ValueError: the store refused a request, or does not answer.
    """
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"the store of {name} does not let the query read and write there: {in_words(error)}. Check the place, the rights of "
            "the keys, and the storage options"
        ) from error


def in_words(error: OSError) -> str:
    """Return the store's own code if it gave one, otherwise the last line of the error."""
    text = _COLOURS_AND_ARROWS.sub("", str(error))
    if code := _CODE.search(text):
        return code[1] or code[2]
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
