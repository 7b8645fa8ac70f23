"""The headers of failed records: ours, and those of Kafka Connect, Spring and share groups."""

from dataclasses import fields
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.retries.headers import (
    PREFIX,
    REDRIVEN_FROM,
    FailureHeaders,
    read_failure,
    without_failure,
    write_failure,
)

_NUMBER = st.none() | st.integers(-1, 2**63 - 1)
_TEXT = st.none() | st.text(max_size=50)
FAILURES = st.builds(
    FailureHeaders, topic=_TEXT, partition=_NUMBER, offset=_NUMBER, timestamp_ms=_NUMBER, group=_TEXT, attempts=_NUMBER,
    error=_TEXT, message=_TEXT, first_failure_ms=_NUMBER, last_failure_ms=_NUMBER, due_ms=_NUMBER,
)  # fmt: skip


@settings(max_examples=30)
@given(FAILURES)
def test_what_is_written_is_read(failure: FailureHeaders) -> None:
    assert read_failure(write_failure(failure)) == (None if failure == FailureHeaders() else failure)


def test_the_page_names_every_header() -> None:
    page = (Path(__file__).parents[2] / "docs" / "retries.md").read_text()
    everything = FailureHeaders(**{each.name: 1 for each in fields(FailureHeaders)})  # type: ignore[arg-type]
    names = [name for name, _ in write_failure(everything)]
    assert len(names) == len(fields(FailureHeaders))
    assert [name for name in (*names, REDRIVEN_FROM) if f"`{name}`" not in page] == []


def test_a_record_without_failure() -> None:
    assert read_failure([("trace", b"1"), (PREFIX + "topic", None)]) is None
    headers = (("trace", b"1"), (PREFIX + "topic", b"orders"), ("trace", None))
    assert without_failure(headers) == (("trace", b"1"), ("trace", None))


def test_a_number_that_is_none_is_absent() -> None:
    assert read_failure([(PREFIX + "offset", b"soon"), (PREFIX + "topic", b"t")]) == FailureHeaders(topic="t")


def test_an_error_of_many_words_is_cut() -> None:
    ((_, value),) = write_failure(FailureHeaders(message="x" * 5000))
    assert value == b"x" * 1000


def test_dead_letters_of_connect() -> None:
    names = {"topic": b"orders", "partition": b"3", "offset": b"42", "connector.name": b"sink"}
    errors = {"exception.class.name": b"java.lang.Boom", "exception.message": b"no"}
    headers = [(f"__connect.errors.{name}", value) for name, value in (names | errors).items()]
    expected = FailureHeaders("orders", 3, 42, group="sink", error="java.lang.Boom", message="no")
    assert read_failure(headers) == expected


def test_dead_letters_of_spring() -> None:
    names = {
        "original-topic": b"orders",
        "original-partition": (3).to_bytes(4, "big"),
        "original-offset": (42).to_bytes(8, "big"),
        "exception-fqcn": b"Wrapper",
        "exception-cause-fqcn": b"Boom",
    }
    headers = [(f"kafka_dlt-{name}", value) for name, value in names.items()]
    assert read_failure(headers) == FailureHeaders("orders", 3, 42, error="Boom")
