"""Errors of source and sink as the user reads them: one sentence, without a traceback.

Spark puts the whole traceback of a Python process into the message of its exception, unless the environment of that
process says `SPARK_HIDE_TRACEBACK`. Such a process ends with its first error, so it may be said for an error whose
sentence is enough. A user who wants to see tracebacks sets the variable to an empty text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.protocol.errors import KafkaError

HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


class QueryError(Exception):
    """The query cannot continue; the message is a sentence for the user."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Let expected errors reach the user as a sentence: what he can correct, data loss, and errors of the cluster.

    Raises:
        QueryError: instead of a `KafkaError`, whose message alone does not name its code.
    """
    try:
        yield
    except KafkaError as error:
        _hide_traceback()
        raise QueryError(error.message if _speaks(error) else f"{error.message} ({error.code.name})") from None
    except (ValueError, QueryError):
        _hide_traceback()
        raise


def _speaks(error: KafkaError) -> bool:
    """Return whether the message was written for this error, and says more than its code."""
    return error.message != error.code.default_message


def _hide_traceback() -> None:
    os.environ.setdefault(HIDE_TRACEBACK, "1")
