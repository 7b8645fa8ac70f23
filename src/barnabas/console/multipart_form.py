"""A form with a file, as a browser sends it: `multipart/form-data`, read in pieces, within bounds.

    --BOUNDARY
    Content-Disposition: form-data; name="topic"

    orders
    --BOUNDARY
    Content-Disposition: form-data; name="file"; filename="orders.jsonl"

    {"value": "1"}
    --BOUNDARY--

No part is larger than it may be, and no more parts are read than a form has, before an error says so. Source: RFC 7578.
"""

from __future__ import annotations

import logging

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from barnabas.console.changes.given import SentFile

PARTS_MAX = 40
TEXT_BYTES_MAX = 64 * 1024
"""Of all fields that are no files, with their names."""
MULTIPART = "multipart/form-data"
_NAME_CHARACTERS = 200
# The parser warns of each bad form; without a handler the lines would be among those of the audit log.
logging.getLogger("python_multipart").addHandler(logging.NullHandler())


class BadMultipart(ValueError):
    """A form cannot be read; the text is a sentence."""


class MultipartForm:
    """Reads a form.

    Args:
        content_type: the header of the request.
        file_bytes_max: how large its files may be together.

    Raises:
        BadMultipart: the header has no usable boundary.

    Attributes:
        texts: the fields that are no files.
        files: the files, by their fields; a field without a file is left out.
    """

    def __init__(self, content_type: str, file_bytes_max: int) -> None:
        self.texts: dict[str, str] = {}
        self.files: dict[str, SentFile] = {}
        self._file_bytes_max = file_bytes_max
        self._file_bytes = 0
        self._text_bytes = 0
        self._parts = 0
        self._is_ended = False
        self._headers: dict[str, str] = {}
        self._header = bytearray()
        self._header_value = bytearray()
        self._data = bytearray()
        self._field: str = ""
        self._file_name: str | None = None
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if not boundary:
            raise BadMultipart("The form does not say how its parts are divided (boundary).")
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin_part,
                    "on_part_data": self._add_data,
                    "on_part_end": self._end_part,
                    "on_header_begin": self._begin_header,
                    "on_header_field": self._add_header_name,
                    "on_header_value": self._add_header_value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_end": self._end,
                },
            )
        except FormParserError:
            raise BadMultipart("The boundary between the parts of the form is too long.") from None

    def __repr__(self) -> str:
        return f"<MultipartForm parts={self._parts} file_bytes={self._file_bytes}>"

    def feed(self, data: bytes) -> None:
        """Read the next piece of the body.

        Raises:
            BadMultipart: it is not such a form, or too large.
        """
        try:
            self._parser.write(data)
        except FormParserError:
            raise BadMultipart("The form is not divided into parts as its boundary says.") from None

    def end(self) -> None:
        """End the body.

        Raises:
            BadMultipart: the form has no end.
        """
        if not self._is_ended:
            raise BadMultipart("The form ends before its last part does.")

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > PARTS_MAX:
            raise BadMultipart(f"The form has more than {PARTS_MAX} parts.")
        self._headers = {}
        self._data = bytearray()

    def _begin_header(self) -> None:
        self._header, self._header_value = bytearray(), bytearray()

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        self._headers[self._header.decode("latin-1").lower()] = self._header_value.decode("latin-1")

    def _end_headers(self) -> None:
        kind, options = parse_options_header(self._headers.get("content-disposition", ""))
        if kind != b"form-data" or b"name" not in options:
            raise BadMultipart("A part of the form does not say which field it is.")
        self._field = options[b"name"].decode("utf-8", "replace")
        name = options.get(b"filename")
        self._file_name = None if name is None else name.decode("utf-8", "replace")[:_NAME_CHARACTERS]
        if self._field in self.texts or self._field in self.files:
            raise BadMultipart("The form has a field twice.")
        self._count_text(len(self._field))

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._file_name is None:
            self._count_text(end - start)
        else:
            self._file_bytes += end - start
            if self._file_bytes > self._file_bytes_max:
                raise BadMultipart(too_large(self._file_bytes_max))
        self._data += data[start:end]

    def _count_text(self, count: int) -> None:
        self._text_bytes += count
        if self._text_bytes > TEXT_BYTES_MAX:
            raise BadMultipart(f"The fields of the form are longer than {TEXT_BYTES_MAX // 1024} KB.")

    def _end_part(self) -> None:
        if self._file_name is None:
            self.texts[self._field] = self._data.decode("utf-8", "replace")
        elif self._file_name or self._data:
            # A browser sends a part without a name for a field in which no file was chosen.
            self.files[self._field] = SentFile(self._file_name, bytes(self._data))
        self._data = bytearray()

    def _end(self) -> None:
        self._is_ended = True


def too_large(file_bytes_max: int) -> str:
    """Return the sentence about a file that is larger than it may be."""
    if not file_bytes_max:
        return "This form takes no file."
    return f"The file is larger than {file_bytes_max >> 20} MB, the most that this form takes."
