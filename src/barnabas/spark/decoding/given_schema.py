"""The schema that a caller of `decode` gives: a value or a file, and a folder of schemas by id.

    schemas/17.avsc
    schemas/18-orders.avsc      what follows the id is for people

`curl REGISTRY/schemas/ids/17/schema > schemas/17.avsc` saves a schema of a registry.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["GivenSchema"]

_NAME = re.compile(r"(\d+)(?:\D.*)?")


@dataclass(frozen=True, slots=True)
class GivenSchema:
    """A schema, and how values refer to it.

    Attributes:
        schema: a value of the format, or the path of a file that holds one.
        framed: Confluent's frame is in front of each value.
        message: Protobuf: the name of the message; None for the first.
        folder: Avro: the folder of the writers' schemas; None if values have no schema id.
    """

    schema: Any
    framed: bool = False
    message: str | None = None
    folder: Path | None = None

    def value(self) -> Any:
        """Return the schema; if it is the path of a file, the file's content as bytes.

        Raises:
            ValueError: the file cannot be read.
        """
        if isinstance(self.schema, Path) or (isinstance(self.schema, str) and _is_file(self.schema)):
            return _read(Path(self.schema))
        return self.schema

    def writers(self) -> dict[int, Any] | None:
        """Return the Avro schemas of the folder by their ids; None if there is no folder.

        Raises:
            ValueError: the folder has no schemas, or two of one id, or one that cannot be read.
        """
        if self.folder is None:
            return None
        found: dict[int, Any] = {}
        for path in sorted(self.folder.glob("*.avsc")):
            match = _NAME.fullmatch(path.stem)
            if match is None:
                raise ValueError(f"the schema {path} has no id: name it for its id, for example 17.avsc")
            number = int(match[1])
            if number in found:
                raise ValueError(f"{self.folder} has two schemas of id {number}")
            try:
                found[number] = json.loads(_read(path))
            except ValueError:
                raise ValueError(f"the schema {path} is not JSON") from None
        if not found:
            raise ValueError(f"{self.folder} has no schemas: it needs a file for each schema id, for example 17.avsc")
        return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read the schema {path}: {(error.strerror or str(error)).lower()}") from None


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or with a null
        return False
