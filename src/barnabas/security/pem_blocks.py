"""The blocks of a PEM text: their label, and the bytes between BEGIN and END.

    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIIFHDBOBgkqhkiG9w0BBQ0wQTApBgkqhkiG…
    -----END ENCRYPTED PRIVATE KEY-----

A properties file often has the whole text in one line, with spaces where the line ends were. Kafka's `PemParser` reads that, and OpenSSL
does not. So the text is taken apart here, and OpenSSL gets it in lines again. Text between the blocks is no part of them.

Source: RFC 7468; Kafka's `DefaultSslEngineFactory.PemParser`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

__all__ = ["PemBlock", "pem_blocks", "pem_text"]

_BLOCK = re.compile(r"-+BEGIN\s+(?P<label>[A-Z0-9 ]*[A-Z0-9])\s*-+(?P<body>.*?)-+END\s+(?P=label)\s*-+", re.DOTALL)
_HEADER = re.compile(r"\s*([A-Za-z][A-Za-z-]*:[^\r\n]*)[\r\n]+")
_LINE = 64


@dataclass(frozen=True, slots=True)
class PemBlock:
    """A block.

    Attributes:
        label: such as `CERTIFICATE` or `ENCRYPTED PRIVATE KEY`.
        der: its bytes, which may be a private key.
        headers: lines such as `Proc-Type: 4,ENCRYPTED`, which only old keys have.
    """

    label: str
    der: bytes = field(repr=False)
    headers: tuple[str, ...] = ()

    @property
    def is_encrypted(self) -> bool:
        """Whether a password is needed to read it."""
        return self.label == "ENCRYPTED PRIVATE KEY" or any("ENCRYPTED" in line for line in self.headers)


def pem_blocks(text: str) -> Iterator[PemBlock]:
    """Yield the blocks of a text, in order.

    Raises:
        ValueError: a block's body is not base64. The message has the label and nothing of the body.
    """
    for found in _BLOCK.finditer(text):
        body, headers = found["body"], []
        while header := _HEADER.match(body):
            headers.append(header[1].strip())
            body = body[header.end() :]
        label = " ".join(found["label"].split())
        try:
            der = base64.b64decode("".join(body.split()), validate=True)
        except binascii.Error:
            raise ValueError(f"the block {label} is not base64") from None
        yield PemBlock(label, der, tuple(headers))


def pem_text(blocks: Iterable[PemBlock]) -> str:
    """Return the text of blocks as OpenSSL reads it."""
    lines = []
    for block in blocks:
        body = base64.b64encode(block.der).decode()
        headers = [*block.headers, ""] if block.headers else []
        lines += [f"-----BEGIN {block.label}-----", *headers]
        lines += [body[start : start + _LINE] for start in range(0, len(body), _LINE)]
        lines += [f"-----END {block.label}-----", ""]
    return "\n".join(lines)
