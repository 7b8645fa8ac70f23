"""The methods of every message, and how a message class is made out of a definition.

A class holds the fields of all versions; the version is chosen when bytes are read or written. Structs within a message are
attributes of its class under Kafka's name: `ProduceRequest.TopicProduceData`. Codecs are compiled at first use and kept.

Invariants:
- Instances have no other attributes than their fields; arrays are lists, fresh for each instance.
- Two instances are equal when they are of one class and all fields are equal; they are not hashable.
- `decode` accepts exactly what one version may look like: every error of the bytes is `MalformedMessage`.
- `write` either appends the whole message or leaves `out` as it was.
- `records` that were read are views of the buffer they came from, and live no longer than it.

Source: Kafka's generated message classes (`org.apache.kafka.common.message`).
"""

from __future__ import annotations

import struct
from operator import attrgetter
from typing import Any, ClassVar, Self

from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.primitives import Buffer, RecordSlice
from barnabas.protocol.reader_source import Reader, ReaderSource
from barnabas.protocol.schema import FieldSpec, MessageSpec, StructSpec, Versions, message_spec
from barnabas.protocol.writer_source import PartsWriter, Writer, WriterSource

MODULE = "barnabas.protocol.messages"
FRESH: Any = object()
"""Default of array and struct parameters: make a new one."""

UNLIMITED = 1 << 62

READ_ERRORS = (struct.error, IndexError, UnicodeDecodeError)
WRITE_ERRORS = (struct.error, UnicodeEncodeError, AttributeError, TypeError, OverflowError)


class Struct:
    """Fields with a value each; the common part of messages and of the structs within them.

    Attributes:
        FIELDS: the names of all fields.
        NESTED: the names of those that are arrays or structs.
    """

    __slots__ = ()
    FIELDS: ClassVar[tuple[str, ...]] = ()
    NESTED: ClassVar[tuple[str, ...]] = ()
    _values: ClassVar[Any] = None
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or not self.FIELDS or bool(self._values(self) == self._values(other))

    def __repr__(self) -> str:
        shown = (f"{name}={show(getattr(self, name))}" for name in self.FIELDS)
        return f"{type(self).__name__}({', '.join(shown)})"


class Message(Struct):
    """A message of Kafka's protocol: request, response, header, record or other data.

    Attributes:
        NAME: Kafka's name.
        KIND: `request`, `response`, `header`, `metadata`, `remote-metadata`, `coordinator-key`, `coordinator-value` or `data`.
        API_KEY: the API of a request or response, the type of a record, or None.
        MIN_VERSION, MAX_VERSION: the versions that can be read and written.
        FLEXIBLE_FROM: first version with compact lengths and tag buffers, None if no version has them.
    """

    __slots__ = ()
    NAME: ClassVar[str]
    KIND: ClassVar[str]
    API_KEY: ClassVar[int | None]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int | None]
    SPEC: ClassVar[MessageSpec]
    _classes: ClassVar[dict[str, type[Struct]]]
    _readers: ClassVar[dict[int, Reader]]
    _writers: ClassVar[dict[int, Writer]]
    _parts_writers: ClassVar[dict[int, PartsWriter]]

    @classmethod
    def decode(cls, buf: Buffer, version: int) -> Self:
        """Read a message that fills the whole buffer.

        Raises:
            MalformedMessage: when it does not, or is no such message.
            KafkaError: UNSUPPORTED_VERSION.
        """
        message, pos = cls.read(buf, 0, version)
        if pos != len(buf):
            raise MalformedMessage(f"{cls.NAME} v{version}: {len(buf) - pos} bytes follow the message")
        return message

    @classmethod
    def read(cls, buf: Buffer, pos: int, version: int, max_elements: int = UNLIMITED) -> tuple[Self, int]:
        """Read a message at a position; returns it and the position after it.

        Args:
            max_elements: how many elements all its arrays may have together.

        Raises:
            LongMessage: it has more; little time was spent to find that out.
            MalformedMessage, KafkaError: as `decode`.
        """
        reader = cls._readers.get(version)
        if reader is None:
            reader = cls._readers[version] = cls._make_reader(version)
        view = buf if type(buf) is memoryview else memoryview(buf)
        try:
            return reader(view, pos, len(view), max_elements)
        except READ_ERRORS as error:
            raise MalformedMessage(f"{cls.NAME} v{version}: {error}") from error

    def encode(self, version: int) -> bytes:
        """Return the message in bytes; records that are in a file are read.

        Raises:
            EncodeError: a field holds what it cannot carry; `UnsupportedVersionField`: the version lacks a field that is set.
            KafkaError: UNSUPPORTED_VERSION.
        """
        out = bytearray()
        self.write(out, version)
        return bytes(out)

    def write(self, out: bytearray, version: int) -> None:
        """Append the message. Raises as `encode`."""
        writer = self._writers.get(version)
        if writer is None:
            self._check_version(version)
            writer = self._writers[version] = WriterSource(self.SPEC, version, parts=False).build()
        start = len(out)
        try:
            writer(out, self)
        except WRITE_ERRORS as error:
            del out[start:]
            raise EncodeError(f"{self.NAME} v{version}: {error}") from error
        except EncodeError:
            del out[start:]
            raise

    def encode_parts(self, version: int) -> list[bytearray | RecordSlice]:
        """Return the message as byte arrays and, between them, the records that are in files. Raises as `encode`."""
        writer = self._parts_writers.get(version)
        if writer is None:
            self._check_version(version)
            writer = self._parts_writers[version] = WriterSource(self.SPEC, version, parts=True).build()
        try:
            return writer(self)
        except WRITE_ERRORS as error:
            raise EncodeError(f"{self.NAME} v{version}: {error}") from error

    @classmethod
    def _make_reader(cls, version: int) -> Reader:
        cls._check_version(version)
        return ReaderSource(cls.SPEC, version, cls._classes).build()

    @classmethod
    def _check_version(cls, version: int) -> None:
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            versions = f"{cls.MIN_VERSION}-{cls.MAX_VERSION}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{cls.NAME} v{version}: versions are {versions}")


def show(value: object) -> str:
    """Return a value for `repr`: record bytes by their number."""
    return f"<{value.nbytes} bytes>" if isinstance(value, memoryview) else repr(value)


def make_message_class(name: str) -> type[Message]:
    """Make the class of a message.

    Raises:
        KeyError: when Kafka has no such message.
    """
    spec = message_spec(name)
    classes: dict[str, type[Struct]] = {}
    # Structs are defined after the structs they hold, so their constructors can name them through `classes`.
    for nested in spec.structs.values():
        classes[nested.name] = make_struct(nested, f"{name}.{nested.name}", classes, (Struct,), {})
    attributes: dict[str, Any] = {
        "NAME": name,
        "KIND": spec.kind,
        "API_KEY": spec.api_key,
        "MIN_VERSION": spec.valid.low,
        "MAX_VERSION": spec.valid.high,
        "FLEXIBLE_FROM": first_flexible(spec.flexible, spec.valid),
        "SPEC": spec,
        "_classes": classes,
        "_readers": {},
        "_writers": {},
        "_parts_writers": {},
        **classes,
    }
    made: Any = make_struct(spec.root, name, classes, (Message,), attributes)
    classes[name] = made
    message: type[Message] = made
    return message


def first_flexible(flexible: Versions, valid: Versions) -> int | None:
    """Return the first valid version that is flexible."""
    low = max(flexible.low, valid.low)
    return low if low <= min(flexible.high, valid.high) else None


def make_struct(
    spec: StructSpec, path: str, classes: dict[str, type[Struct]], bases: tuple[type, ...], attributes: dict[str, Any]
) -> type[Struct]:
    """Make a class with slots and a keyword-only constructor for the fields of a struct."""
    names = tuple(field.name for field in spec.fields)
    namespace: dict[str, Any] = {
        "__module__": MODULE,
        "__qualname__": path,
        "__slots__": names,
        "__init__": make_constructor(spec, classes),
        "FIELDS": names,
        "NESTED": tuple(field.name for field in spec.fields if field.is_array or field.is_struct),
        "_values": staticmethod(attrgetter(*names)) if names else None,
        **attributes,
    }
    return type(spec.name, bases, namespace)


def make_constructor(spec: StructSpec, classes: dict[str, type[Struct]]) -> Any:
    """Compile `__init__`: every field a keyword with its default."""
    parameters = "".join(f", {field.name}={constructor_default(field)}" for field in spec.fields)
    lines = [f"def __init__(self{', *' if parameters else ''}{parameters}):"]
    for field in spec.fields:
        if constructor_default(field) != "FRESH":
            lines.append(f"    self.{field.name} = {field.name}")
        else:
            empty = "[]" if field.is_array else f"classes[{field.type!r}]()"
            lines.append(f"    self.{field.name} = {empty} if {field.name} is FRESH else {field.name}")
    if not spec.fields:
        lines.append("    pass")
    namespace: dict[str, Any] = {"FRESH": FRESH, "classes": classes}
    exec("\n".join(lines), namespace)
    return namespace["__init__"]


def constructor_default(field: FieldSpec) -> str:
    if field.default is not None and (field.is_array or field.is_struct):
        return "FRESH"
    return repr(field.default)
