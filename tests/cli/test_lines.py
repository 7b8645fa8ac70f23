"""Lines of `produce`'s input, whole and as a slow pipe brings them."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.cli.lines import Lines
from barnabas.cli.record_reader import Given
from tests.cli.test_record_reader import Trickle


def test_lines_with_and_without_keys() -> None:
    lines = Lines.of(b"\n", b":")
    assert list(lines.records(io.BytesIO(b"k:v:w\nnone\n:empty\n"))) == [
        Given(b"v:w", b"k"),
        Given(b"none"),
        Given(b"empty", b""),
    ]
    assert list(Lines.of(b"\r\n", None).records(Trickle(b"a\nb\r\nc"))) == [Given(b"a\nb"), Given(b"c")]
    with pytest.raises(ValueError, match="at least one character"):
        Lines.of(b"", None)
    with pytest.raises(ValueError, match="at least one character"):
        Lines.of(b"\n", b"")


def test_a_line_is_there_as_soon_as_it_has_its_end() -> None:
    arriving = Trickle(b"one\ntwo")
    batches = Lines.of(b"\n", None).batches(arriving)
    assert next(batches) == [b"one"]
    assert arriving.tell() == len(b"one\n")
    assert list(batches) == [[b"two"]]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.binary(max_size=30).map(lambda data: bytes(b"ab\n"[each % 3] for each in data)),
    st.sampled_from([b"a", b"aa", b"aba"]),
)
def test_batches_are_what_the_whole_input_splits_into(data: bytes, delimiter: bytes) -> None:
    whole = data.split(delimiter)
    expected = whole if whole[-1] else whole[:-1]
    lines = Lines.of(delimiter, None)
    assert [line for batch in lines.batches(io.BytesIO(data)) for line in batch] == expected
    assert [line for batch in lines.batches(Trickle(data)) for line in batch] == expected
