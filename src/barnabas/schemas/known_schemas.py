"""Schemas that need no registry: a folder of them, read once and written by `pull`.

    schemas/17.avsc           an Avro schema; 17-orders.avsc is one as well: what follows the id is for people
    schemas/18.json           a JSON Schema
    schemas/19.desc           a compiled .proto file (a FileDescriptorProto)
    schemas/subjects.json     {"subjects": {"orders-value": {"1": 17}}, "references": {"17": [{"name": …, "subject": …, "version": 1}]}}

Without `subjects.json` schemas are known by id alone. A file is written under another name and renamed; `subjects.json` comes last, so a
folder that was filled halfway names no schema that it does not have.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.schemas.errors import SchemaError, SchemaNotFound
from barnabas.schemas.schema import AVRO, JSON, PROTOBUF, Reference, RegisteredSchema, Schema
from barnabas.words.nearest import did_you_mean

__all__ = ["KnownSchemas", "read_folder", "write_folder"]

_NAME = re.compile(r"(\d+)(?:\D.*)?")
_INDEX = "subjects.json"
_SUFFIXES = {".avsc": AVRO, ".json": JSON, ".desc": PROTOBUF}
_SUFFIX_OF = {kind: suffix for suffix, kind in _SUFFIXES.items()}


@dataclass(frozen=True)
class KnownSchemas:
    """Schemas by id, and the ids of subjects' versions.

    Attributes:
        name: for messages.
        schemas: by id.
        subjects: the ids by version, by subject.
    """

    name: str
    schemas: Mapping[int, Schema]
    subjects: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    def by_id(self, schema_id: int) -> Schema:
        """Return a schema.

        Raises:
            SchemaNotFound: no schema has this id.
        """
        if schema_id not in self.schemas:
            raise SchemaNotFound(f"schema {schema_id} is not among the schemas of {self.name}")
        return self.schemas[schema_id]

    def versions(self, subject: str) -> list[int]:
        """Return the numbers of a subject's versions.

        Raises:
            SchemaNotFound: there is no such subject.
        """
        if subject not in self.subjects:
            hint = did_you_mean(subject, self.subjects) or ": fill the folder from the registry again"
            raise SchemaNotFound(f"{self.name} has no subject {subject}{hint}")
        return sorted(self.subjects[subject])

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        """Return a version of a subject, by its number or as `latest`.

        Raises:
            SchemaNotFound: there is no such subject, version or schema.
        """
        versions = self.versions(subject)
        number = versions[-1] if version == "latest" else int(version)
        if number not in versions:
            raise SchemaNotFound(f"{self.name} has no version {version} of subject {subject}: it has {versions}")
        schema_id = self.subjects[subject][number]
        return RegisteredSchema(subject, number, schema_id, self.by_id(schema_id))

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Return the version that a schema is; JSON is compared as JSON.

        Raises:
            SchemaNotFound: the subject does not exist, or does not have the schema.
        """
        wanted = _comparable(schema)
        for number in reversed(self.versions(subject)):
            found = self.version(subject, number)
            if _comparable(found.schema) == wanted:
                return found
        raise SchemaNotFound(f"{self.name} does not have the schema in subject {subject}")

    def register(self, subject: str, schema: Schema) -> int:
        """Return the id of a schema that is known; a folder takes no new ones.

        Raises:
            SchemaNotFound: it is not known.
        """
        try:
            return self.lookup(subject, schema).schema_id
        except SchemaNotFound as error:
            raise SchemaNotFound(f"{error}, and a folder takes no new ones: register it in a registry") from None


def _comparable(schema: Schema) -> tuple[Any, ...]:
    text = schema.text if schema.kind == PROTOBUF else json.loads(schema.text)
    return schema.kind, text, schema.references


def read_folder(folder: Path) -> KnownSchemas:
    """Return the schemas of a folder.

    Raises:
        SchemaError: it has none, or two of one id, or a file that cannot be read.
    """
    index = _index(folder / _INDEX)
    found: dict[int, Schema] = {}
    try:
        references = {
            int(number): tuple(Reference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in each)
            for number, each in index.get("references", {}).items()
        }
        subjects = {
            str(subject): {int(version): int(number) for version, number in versions.items()}
            for subject, versions in index.get("subjects", {}).items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SchemaError(f"{folder / _INDEX} is not an index of schemas: fill the folder again") from None
    for path in _files(folder):
        match = _NAME.fullmatch(path.stem)
        if match is None:
            raise SchemaError(f"the schema {path} has no id: name it for its id, for example 17{path.suffix}")
        number = int(match[1])
        if number in found:
            raise SchemaError(f"{folder} has two schemas of id {number}")
        found[number] = Schema(_text(path), _SUFFIXES[path.suffix], references.get(number, ()))
    if not found:
        raise SchemaError(f"{folder} has no schemas: it needs a file for each schema id, for example 17.avsc")
    return KnownSchemas(str(folder), found, subjects)


def write_folder(folder: Path, known: KnownSchemas) -> None:
    """Add schemas to a folder; files of other ids stay.

    Raises:
        SchemaError: a file cannot be written, or the folder has another schema under one of the ids.
    """
    old = read_folder(folder) if _files(folder) else KnownSchemas(str(folder), {})
    for number, schema in known.schemas.items():
        if number in old.schemas and _comparable(old.schemas[number]) != _comparable(schema):
            raise SchemaError(
                f"{folder} has another schema of id {number}: it is of another registry, choose another folder"
            )
    every = {**old.schemas, **known.schemas}
    index = {
        "subjects": {
            subject: {str(version): number for version, number in sorted(versions.items())}
            for subject, versions in sorted({**old.subjects, **known.subjects}.items())
        },
        "references": {
            str(number): [each.to_json() for each in schema.references]
            for number, schema in sorted(every.items())
            if schema.references
        },
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, schema in known.schemas.items():
            if number not in old.schemas:
                _replace(folder / f"{number}{_SUFFIX_OF[schema.kind]}", _data(schema))
        _replace(folder / _INDEX, json.dumps(index, indent=2).encode() + b"\n")
    except OSError as error:
        raise SchemaError(f"cannot write schemas to {folder}: {(error.strerror or str(error)).lower()}") from None


def _files(folder: Path) -> list[Path]:
    """Return the schemas' files; what a killed writer did not finish is not among them."""
    return sorted(each for each in folder.glob("*") if each.suffix in _SUFFIXES and each.name != _INDEX)


def _replace(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.write_bytes(data)
    os.replace(unfinished, path)


def _data(schema: Schema) -> bytes:
    return base64.b64decode(schema.text) if schema.kind == PROTOBUF else schema.text.encode()


def _text(path: Path) -> str:
    data = _read(path)
    if _SUFFIXES[path.suffix] == PROTOBUF:
        return base64.b64encode(data).decode()
    try:
        json.loads(data)
        return data.decode()
    except ValueError:
        raise SchemaError(f"the schema {path} is not JSON") from None


def _index(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(_read(path))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SchemaError(f"{path} is not an index of schemas: fill the folder again")
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SchemaError(f"cannot read the schema {path}: {(error.strerror or str(error)).lower()}") from None
