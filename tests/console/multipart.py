"""Forms with files, as bytes."""

from __future__ import annotations

BOUNDARY = "xyz"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"


def part(name: str, data: bytes, file_name: str | None = None, boundary: str = BOUNDARY) -> bytes:
    file = "" if file_name is None else f'; filename="{file_name}"'
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
    return head.encode() + data + b"\r\n"


def form(*parts: bytes, boundary: str = BOUNDARY) -> bytes:
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


HOSTILE = [
    ("no boundary", "multipart/form-data", form(part("token", b"x")), "does not say how its parts are divided"),
    ("empty boundary", "multipart/form-data; boundary=", form(), "does not say how its parts are divided"),
    ("another boundary", "multipart/form-data; boundary=abc", form(part("token", b"x")), "is not divided into parts"),
    ("long boundary", f"multipart/form-data; boundary={'b' * 4000}", form(), "The boundary between the parts of the form"),
    ("no end", TYPE, part("token", b"x"), "The form ends before its last part does."),
    ("nothing", TYPE, b"", "The form ends before its last part does."),
    ("many parts", TYPE, form(*(part(f"f{each}", b"") for each in range(10_000)))[:60_000], "has more than 40 parts"),
    ("field twice", TYPE, form(part("a", b"1"), part("a", b"2")), "has a field twice"),
    ("no name", TYPE, b"--xyz\r\nContent-Disposition: form-data\r\n\r\n\r\n--xyz--\r\n", "does not say which field it is"),
    ("no disposition", TYPE, b"--xyz\r\n\r\nx\r\n--xyz--\r\n", "does not say which field it is"),
    ("header without end", TYPE, b"--xyz\r\nX: " + b"y" * 60_000, "is not divided into parts"),
    ("many headers", TYPE, b"--xyz\r\n" + b"X: y\r\n" * 9_000, "is not divided into parts"),
    ("long name", TYPE, form(part("n" * 5_000, b"")), "is not divided into parts"),
]  # fmt: skip
"""Name, content type, body, and a part of the sentence."""
