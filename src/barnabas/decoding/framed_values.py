"""Values behind the id of a schema: Confluent's wire format, by a registry or a folder of schemas.

A schema is asked for once. While the registry does not answer, no value asks it again for ten seconds: each would wait as long.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import fastavro
from fastavro import _read_py
from google.protobuf.descriptor import Descriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from barnabas.decoding.avro_bounds import AvroBounds, bounds_of
from barnabas.decoding.json_values import from_json
from barnabas.decoding.plain_data import plain
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.schema import AVRO, JSON, Schema
from barnabas.schemas.source import SchemaSource
from barnabas.spark.decoding.avro_schemas import ParsedAvro, avro_schema_of, parsed_avro
from barnabas.spark.decoding.bad_value import BadValue
from barnabas.spark.decoding.confluent_frame import split_frame, split_message_indexes
from barnabas.spark.decoding.descriptor_sets import descriptor_set_of, message_at

FORMAT_OF_KIND = {"AVRO": "avro", "JSON": "json", "PROTOBUF": "protobuf"}
SILENCE_S = 10.0


class FramedValues:
    """Decodes values by the schemas of a source.

    Args:
        clock: returns seconds that never go back.
    """

    def __init__(self, source: SchemaSource, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._schemas: dict[int, Schema] = {}
        self._avro: dict[int, tuple[ParsedAvro, AvroBounds]] = {}
        self._descriptor_sets: dict[int, bytes] = {}
        self._messages: dict[tuple[int, tuple[int, ...]], Descriptor] = {}
        self._silence: tuple[float, str] | None = None

    def __repr__(self) -> str:
        return f"<FramedValues schemas={sorted(self._schemas)}>"

    def format_of(self, data: bytes) -> str:
        """Return the format of a value.

        Raises:
            BadValue: it has no frame, or there is no such schema, or the registry does not answer.
        """
        schema_id, _ = split_frame(data)
        return FORMAT_OF_KIND[self._schema(schema_id).kind]

    def decode(self, data: bytes) -> tuple[str, Any]:
        """Return the format of a value and its data, as JSON has it.

        Raises:
            BadValue: as `format_of`, or it is not of its schema.
        """
        schema_id, rest = split_frame(data)
        schema = self._schema(schema_id)
        try:
            if schema.kind == AVRO:
                return "avro", self._of_avro(schema_id, schema, rest)
            if schema.kind == JSON:
                return "json", from_json(rest)
            return "protobuf", self._of_protobuf(schema_id, schema, rest)
        except BadValue as error:
            raise BadValue(f"{error} (schema {schema_id})") from None
        except RecursionError:
            raise BadValue(f"it is nested too deeply (schema {schema_id})") from None

    def _schema(self, schema_id: int) -> Schema:
        if schema_id not in self._schemas:
            self._schemas[schema_id] = self._asked(lambda: self._source.by_id(schema_id))
        return self._schemas[schema_id]

    def _asked(self, ask: Callable[[], Any]) -> Any:
        now_s = self._clock()
        if self._silence is not None and now_s < self._silence[0]:
            raise BadValue(self._silence[1])
        try:
            return ask()
        except RegistryError as error:
            self._silence = self._clock() + SILENCE_S, str(error)
            raise BadValue(str(error)) from None
        except ValueError as error:
            raise BadValue(str(error)) from None

    def _of_avro(self, schema_id: int, schema: Schema, data: bytes) -> Any:
        if schema_id not in self._avro:
            found = self._asked(lambda: parsed_avro(avro_schema_of(self._source, schema), f"schema {schema_id}"))
            self._avro[schema_id] = found, bounds_of(found.schema, found.names)
        parsed, bounds = self._avro[schema_id]
        if bounds.has_free_elements:
            raise BadValue("its schema has lists of elements without bytes, which may be of any length")
        # The reader in Python ends with a RecursionError.
        read = _read_py.schemaless_reader if bounds.is_recursive else fastavro.schemaless_reader
        stream = io.BytesIO(data)
        try:
            value = read(stream, parsed.schema, None)
        except RecursionError:
            raise
        except (EOFError, IndexError):
            raise BadValue("it is not of its schema: it ends too early") from None
        except Exception as error:  # of the library's parts: struct, decimal, datetime, codecs
            raise BadValue(f"it is not of its schema: {error}") from None
        if rest := len(data) - stream.tell():
            raise BadValue(f"it is not of its schema: {rest} bytes are left")
        return plain(value)

    def _of_protobuf(self, schema_id: int, schema: Schema, data: bytes) -> Any:
        path, rest = split_message_indexes(data)
        if schema_id not in self._descriptor_sets:
            what = f"schema {schema_id}"
            self._descriptor_sets[schema_id] = self._asked(lambda: descriptor_set_of(self._source, schema, what))
        if (schema_id, path) not in self._messages:
            self._messages[schema_id, path] = self._asked(lambda: message_at(self._descriptor_sets[schema_id], path))
        message = GetMessageClass(self._messages[schema_id, path])()
        try:
            message.ParseFromString(rest)
            return plain(MessageToDict(message, preserving_proto_field_name=True))
        except DecodeError:
            raise BadValue(f"it is not a message {message.DESCRIPTOR.full_name}") from None
        except (TypeError, ValueError) as error:  # an Any of an unknown type, a time that no calendar has
            raise BadValue(f"it cannot be shown: {error}") from None
