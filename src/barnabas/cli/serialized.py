"""Records decoded for `consume -s`, and encoded for `produce -s`.

A value that cannot be decoded is printed as it is, and counted. A value that cannot be encoded ends the command: a program downstream
must not find a gap.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module

import click
from confluent_kafka import Message

from barnabas.cli.failure import Failure
from barnabas.cli.output import printable_json
from barnabas.cli.record_printer import Printer, json_field, json_object_of
from barnabas.cli.record_reader import Given, Pair
from barnabas.cli.registry_options import settings_of
from barnabas.cli.serdes import Serdes
from barnabas.cli.wording import counted
from barnabas.decoding.msgpack_values import from_msgpack, to_msgpack
from barnabas.schemas.errors import SchemaError
from barnabas.schemas.registry import SchemaRegistry
from barnabas.schemas.source import SchemaSource, source_of
from barnabas.schemas.subject_names import subject_name
from barnabas.spark.decoding.bad_value import BadValue
from barnabas.words.printable import printable
from barnabas.words.requirements import needed_by


@cache
def opened_source(serdes: Serdes) -> SchemaSource | None:
    """Return the source of schemas, after it has answered; None if none is needed.

    Raises:
        Failure: it does not answer, or the folder has no schemas.
    """
    if serdes.registry is None and serdes.registry_config is None:
        return None
    try:
        if serdes.registry_config is not None or serdes.registry is None:
            source: SchemaSource = SchemaRegistry(settings_of(serdes.registry, serdes.registry_config))
        else:
            source = source_of(serdes.registry)
        if isinstance(source, SchemaRegistry):
            source.check()
    except SchemaError as error:
        raise Failure(str(error)) from None
    return source


class Decoding:
    """Decodes messages, before they are printed.

    Attributes:
        undecoded: how many keys and values could not be decoded.
        why: the reason for the first of them.
    """

    def __init__(self, serdes: Serdes, source: SchemaSource | None) -> None:
        self.undecoded = 0
        self.why = ""
        self._key = _decoder(serdes.key, source)
        self._value = _decoder(serdes.value, source)

    def __repr__(self) -> str:
        return f"<Decoding undecoded={self.undecoded}>"

    def before(self, show: Printer) -> Printer:
        """Return a printer that decodes its messages first."""
        return lambda messages: show(self.decoded(messages))

    def decoded(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages with keys and values in JSON."""
        for message in messages:
            if (key := self._json(self._key, message.key(), message)) is not None:
                message.set_key(key.encode())
            if (value := self._json(self._value, message.value(), message)) is not None:
                message.set_value(value.encode())
        return messages

    def json_lines(self, messages: Sequence[Message]) -> bytes:
        """Return messages as `record_printer.json_lines` does, with what is decoded as it is, and not as text."""
        return "".join([printable_json(self._object(message)) + "\n" for message in messages]).encode()

    def report(self) -> None:
        """Say what could not be decoded."""
        if self.undecoded:
            what = counted(self.undecoded, "key" if self._value is None else "value" if self._key is None else "part")
            click.echo(f"{what} could not be decoded: {printable(self.why)}", err=True)

    def _object(self, message: Message) -> str:
        fields = []
        for name, decode, data in (("key", self._key, message.key()), ("value", self._value, message.value())):
            text = self._json(decode, data, message)
            fields.append(json_field(name, data) if text is None else f'"{name}": {text}')
        return json_object_of(message, *fields)

    def _json(self, decode: Callable[[bytes], object] | None, data: bytes | None, message: Message) -> str | None:
        """Return a key or value as JSON; None if it stays as it is."""
        if decode is None or data is None:
            return None
        try:
            return _quoted(decode(data))
        except BadValue as error:
            self.undecoded += 1
            self.why = self.why or f"{message.topic()}-{message.partition()} offset {message.offset()}: {error}"
            return None


_quoted = json.JSONEncoder(ensure_ascii=False).encode


def _decoder(format: str | None, source: SchemaSource | None) -> Callable[[bytes], object] | None:
    if format is None:
        return None
    if format == "msgpack":
        return from_msgpack
    assert source is not None, "serdes_of has checked it"
    with needed_by("-s", "schemas"):
        framed = import_module("barnabas.decoding.framed_values").FramedValues(source)
    return lambda data: framed.decode(data)[1]


class Encoding:
    """Encodes keys and values of records, which are JSON.

    Raises:
        Failure: a subject of the topic has no schema.
    """

    def __init__(self, serdes: Serdes, source: SchemaSource | None, topic: str | None) -> None:
        self._topic = topic
        self._read = 0
        self._encoder = cache(lambda part, topic: _encoder(getattr(serdes, part), source, topic, part))
        if topic is not None:
            for part in ("key", "value"):
                self._encoder(part, topic)

    def __repr__(self) -> str:
        return f"<Encoding topic={self._topic} read={self._read}>"

    def pairs(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        """Yield values and keys of the topic, encoded.

        Raises:
            ValueError: one is not of its schema.
        """
        assert self._topic is not None, "a line names none"
        of_key, of_value = (self._encoder(part, self._topic) for part in ("key", "value"))
        for value, key in pairs:
            self._read += 1
            yield self._encoded("value", of_value, value), self._encoded("key", of_key, key)

    def records(self, records: Iterator[Given]) -> Iterator[Given]:
        """Yield records, encoded; errors as in `pairs`."""
        for record in records:
            self._read += 1
            topic = self._topic or record.topic
            if topic is None:
                raise ValueError("a record names no topic")
            value = self._encoded("value", self._encoder("value", topic), record.value)
            yield record._replace(value=value, key=self._encoded("key", self._encoder("key", topic), record.key))

    def _encoded(self, part: str, encode: Callable[[bytes], bytes] | None, data: bytes | None) -> bytes | None:
        if encode is None or data is None:
            return data
        try:
            return encode(data)
        except BadValue as error:
            raise ValueError(f"record {self._read:,}: its {part} cannot be encoded: {error}") from None


def _encoder(format: str | None, source: SchemaSource | None, topic: str, part: str) -> Callable[[bytes], bytes] | None:
    if format is None:
        return None
    if format == "msgpack":
        return to_msgpack
    with needed_by("-s", "schemas"):
        encoders = import_module("barnabas.decoding.value_encoders")
    assert source is not None, "serdes_of has checked it"
    subject = subject_name("TopicName", topic, part, None)
    try:
        made: Callable[[bytes], bytes] = encoders.framed_encoder(source, format.upper(), subject)
    except SchemaError as error:
        raise Failure(str(error), f"`barnabas schemas put {subject} FILE` registers a schema") from None
    return made
