"""The decoder under atheris: coverage of the compiled readers and of `records` chooses the bytes (libFuzzer's way)."""

from __future__ import annotations

import sys

from barnabas.protocol.messages import message_class
from barnabas.protocol.schema import message_names
from tests.fuzz.decoder import Decoders


def run(seed: int, seconds: int) -> None:
    """Fuzz for so many seconds; libFuzzer ends the process, with 77 when an oracle failed."""
    import atheris

    atheris.instrument_all()
    decoders = Decoders(seed)
    classes = [message_class(name) for name in message_names()]

    def one(data: bytes) -> None:
        if len(data) < 3:
            return
        choice, version, rest = int.from_bytes(data[:2]), data[2], data[3:]
        if choice >> 15:
            decoders.records(rest)
            return
        of = classes[choice % len(classes)]
        decoders.message(of, of.MIN_VERSION + version % (of.MAX_VERSION - of.MIN_VERSION + 1), rest)

    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", f"-seed={seed}", "-max_len=4096"], one)
    atheris.Fuzz()
