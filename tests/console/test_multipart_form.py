"""Forms with files, in pieces and within bounds."""

from __future__ import annotations

import pytest

from barnabas.console.changes.given import SentFile
from barnabas.console.multipart_form import TEXT_BYTES_MAX, BadMultipart, MultipartForm
from tests.console.multipart import HOSTILE, TYPE, form, part

LINES = b'{"value": "1"}\r\n--xy\r\n\x00\xff\r\n'
WHOLE = form(part("topic", "größe".encode()), part("file", LINES, 'a"b.jsonl'), part("none", b"", ""))


def read(content_type: str, *pieces: bytes, most: int = 1000) -> MultipartForm:
    found = MultipartForm(content_type, most)
    for each in pieces:
        found.feed(each)
    found.end()
    return found


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
def test_in_pieces(size: int) -> None:
    found = read(TYPE, *(WHOLE[at : at + size] for at in range(0, len(WHOLE), size)))
    assert found.texts == {"topic": "größe"}
    assert found.files["file"].data == LINES
    assert list(found.files) == ["file"]


def test_the_name_of_a_file_is_text() -> None:
    names = ["../../etc/passwd", "<script>", "x" * 500]
    found = read(TYPE, form(*(part(f"f{number}", b"1", name) for number, name in enumerate(names))))
    assert list(found.files.values()) == [SentFile(each[:200], b"1") for each in names]


@pytest.mark.parametrize(
    ("content_type", "body", "sentence"), [each[1:] for each in HOSTILE], ids=[each[0] for each in HOSTILE]
)
def test_what_cannot_be_read(content_type: str, body: bytes, sentence: str) -> None:
    with pytest.raises(BadMultipart, match=sentence) as refused:
        read(content_type, body)
    assert str(refused.value).endswith(".")


def test_what_is_too_large_is_not_read_to_its_end() -> None:
    for parts, most, sentence in (
        ([part("file", b"x" * (1 << 20), "f")[:-2], b"x"], 1 << 20, "The file is larger than 1 MB"),
        ([part("a", b"x" * 600, "f"), part("b", b"x" * 600, "f")], 1000, "The file is larger than 0 MB"),
        ([part("a", b"x", "f")], 0, "This form takes no file."),
        ([part("a", b"x" * TEXT_BYTES_MAX)], 0, "The fields of the form are longer than 64 KB."),
    ):
        with pytest.raises(BadMultipart, match=sentence):
            read(TYPE, *parts, most=most)
