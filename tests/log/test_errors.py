"""Why the log rejects a call: each error has Kafka's code, and people read its words."""

from __future__ import annotations

import errno
import inspect
import os
import re

import pytest

from barnabas.log import errors
from barnabas.log.errors import InvalidRecords, KafkaStorageError, OffsetOutOfRange, in_words
from barnabas.protocol.errors import ErrorCode, KafkaError


def of_the_module() -> dict[str, type[KafkaError]]:
    made = inspect.getmembers(errors, inspect.isclass)
    own = {name: each for name, each in made if each.__module__ == errors.__name__}
    return {name: each for name, each in own.items() if name != "RecordsRejected"}


def test_the_tree_in_the_docstring_has_every_error_with_its_code() -> None:
    drawn = dict(re.findall(r"[├└]─ (\w+) +([A-Z_]+)", errors.__doc__ or ""))
    made = {name: each for name, each in of_the_module().items() if name != "OffsetOutOfRange"}
    codes = {name: ErrorCode(each("words").code).name for name, each in made.items()}  # type: ignore[call-arg, arg-type]
    codes["OffsetOutOfRange"] = ErrorCode(OffsetOutOfRange(7, 0, 5, "t-0").code).name
    assert codes == drawn


def test_an_offset_out_of_range_names_the_range() -> None:
    words = OffsetOutOfRange(7, 0, 5, "t-0").message
    assert "offset 7 for partition t-0" in words
    assert words.endswith("in the range 0 to 5.")


def test_rejected_records_are_named_for_the_client() -> None:
    error = InvalidRecords("two are bad", [(0, "no key"), (3, "too old")])
    assert (error.record_errors, error.client_message) == ([(0, "no key"), (3, "too old")], "two are bad")
    assert InvalidRecords("none is named").record_errors == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KafkaStorageError("the disk is gone"), "the disk is gone"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/t-0"), "No space left on device (/data/t-0)"),
        (OSError(errno.EIO, os.strerror(errno.EIO)), "Input/output error"),
        (OSError(errno.ELOOP, os.strerror(errno.ELOOP), "/data/x"), "a symbolic link stands in its place (/data/x)"),
        (OSError("only words"), "only words"),
        (ValueError(), "ValueError"),
    ],
)
def test_what_went_wrong_is_one_line_without_a_number_or_a_class(error: BaseException, words: str) -> None:
    assert in_words(error) == words
