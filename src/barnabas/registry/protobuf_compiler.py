"""Protobuf schemas: `.proto` text, or a compiled file in base64, which Confluent's client for Python sends.

Google's compiler, in the package grpcio-tools, compiles text in a process of its own, in a folder with the files that it imports: a text
that breaks the compiler breaks nothing else. Two schemas are one if their compiled files are, whatever their names, comments and layout:
the text that Java registers and the file that Python registers have one id.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from barnabas.registry.protobuf_text import NotWritten, json_name_of, protobuf_text

__all__ = ["CompiledSchema", "InvalidProtobuf", "compile_protobuf"]

_TIMEOUT_S = 20
_MAIN = "this.schema.proto"
_OUT = "compiled"
_LONGEST_REASON = 500


class InvalidProtobuf(ValueError):
    """The text is not a Protobuf schema; the message says why."""


class CompiledSchema(NamedTuple):
    """A schema and its compiled file.

    Attributes:
        text: `.proto` text; a compiled file in base64 if it has a part that is not written as text.
        content: the compiled file without its name and comments; equal for equal schemas.
    """

    text: str
    content: bytes

    @property
    def serialized(self) -> str:
        """The compiled file in base64, as a registry returns it for `format=serialized`."""
        return base64.b64encode(self.content).decode()


def compile_protobuf(text: str, needed: Mapping[str, str]) -> CompiledSchema:
    """Compile a schema.

    Args:
        text: `.proto` text, or a compiled file in base64.
        needed: by the path of the import, the schemas that it imports, and those that they import.

    Raises:
        InvalidProtobuf: it is not valid.
    """
    given = _from_base64(text)
    if given is None:
        return CompiledSchema(text, _content(_compiled(text, needed)))
    try:
        written = protobuf_text(given)
    except NotWritten:
        return CompiledSchema(text, _content(given))
    return CompiledSchema(written, _content(_compiled(written, needed)))


def _from_base64(text: str) -> FileDescriptorProto | None:
    try:
        content = base64.b64decode(text, validate=True)
        return FileDescriptorProto.FromString(content) if content else None
    except (ValueError, DecodeError):
        return None


def _compiled(text: str, needed: Mapping[str, str]) -> FileDescriptorProto:
    if not text.strip():
        raise InvalidProtobuf("it is empty")
    spec = find_spec("grpc_tools")
    if spec is None or not spec.submodule_search_locations:
        raise InvalidProtobuf(
            "this registry cannot compile Protobuf, because the package grpcio-tools is not installed"
        )
    well_known = Path(spec.submodule_search_locations[0], "_proto")
    with tempfile.TemporaryDirectory(prefix="barnabas-registry-") as name:
        folder = Path(name)
        for path, each in needed.items():
            _write(folder, path, each)
        (folder / _MAIN).write_text(text, encoding="utf-8")
        _run(
            [f"-I{folder}", f"-I{well_known}", f"--descriptor_set_out={folder / _OUT}", str(folder / _MAIN)],
            folder,
        )
        (file,) = FileDescriptorSet.FromString((folder / _OUT).read_bytes()).file
        return file


def _run(arguments: list[str], folder: Path) -> None:
    # -P: no module is imported from the working directory.
    command = [sys.executable, "-P", "-m", "grpc_tools.protoc", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, cwd=folder, check=False)
    except subprocess.TimeoutExpired:
        raise InvalidProtobuf(f"the compiler has not ended after {_TIMEOUT_S} seconds") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").splitlines()
        reasons = "; ".join(line for line in lines if ": warning: " not in line)
        reasons = reasons.replace(f"{folder}/", "").replace(f"{_MAIN}:", "line ")
        raise InvalidProtobuf(reasons[:_LONGEST_REASON] or f"the compiler ended with {done.returncode}")


def _write(folder: Path, name: str, schema: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or name == _MAIN or not path.parts or "\0" in name:
        raise InvalidProtobuf(f"{name[:80]} is not the path of an import")
    file = folder / path
    given = _from_base64(schema)
    try:
        written = schema if given is None else protobuf_text(given)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(written, encoding="utf-8")
    except NotWritten as error:
        raise InvalidProtobuf(
            f"{name[:80]} was registered as a compiled file with {error}: register its text"
        ) from None
    except OSError as error:
        raise InvalidProtobuf(f"{name[:80]} is not the path of an import: {error.strerror}") from None


def _content(file: FileDescriptorProto) -> bytes:
    """Return a compiled file without what makes no other schema of it."""
    plain = FileDescriptorProto()
    plain.CopyFrom(file)
    plain.ClearField("name")
    plain.ClearField("source_code_info")
    if plain.syntax == "proto2":
        plain.ClearField("syntax")
    for message in plain.message_type:
        _drop_json_names(message)
    return bytes(plain.SerializeToString(deterministic=True))


def _drop_json_names(message: DescriptorProto) -> None:
    """Drop the names in JSON that follow from the fields' own: a compiler writes them or not."""
    for field in message.field:
        if field.json_name == json_name_of(field.name):
            field.ClearField("json_name")
    for nested in message.nested_type:
        _drop_json_names(nested)
