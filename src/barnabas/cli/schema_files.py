"""A schema in a file of one's own: its type, its text, and the schemas that it refers to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from barnabas.cli.failure import Failure
from barnabas.schemas.schema import AVRO, KINDS, PROTOBUF, Reference, Schema
from barnabas.words.printable import printable

_BY_SUFFIX = {".avsc": AVRO, ".proto": PROTOBUF}
_CHOICES = [kind.lower() for kind in KINDS]


def schema_file_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the argument FILE and the options of its type and references; `schema_in` takes them."""
    file = click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
    kind = click.option(
        "--type", "kind", type=click.Choice(_CHOICES, case_sensitive=False),
        help="The type of the schema.  [default: avro for .avsc, protobuf for .proto]",
    )  # fmt: skip
    reference = click.option(
        "--reference", "references", metavar="NAME=SUBJECT:VERSION", multiple=True,
        help="A schema that this one needs, by the name that it has in it; repeat.",
    )  # fmt: skip
    return file(kind(reference(function)))


def schema_in(file: Path, kind: str | None, references: tuple[str, ...]) -> Schema:
    """Return the schema in a file.

    Args:
        kind: avro, json or protobuf; None to decide by the name of the file.
        references: each NAME=SUBJECT:VERSION.

    Raises:
        Failure: the file is not text, or its name does not say the type.
        BadParameter: a reference is not written so.
    """
    found = kind.upper() if kind else _BY_SUFFIX.get(file.suffix.lower())
    if found is None:
        raise Failure(
            f"the name of {printable(str(file))} does not say the type of the schema",
            "--type avro, json or protobuf does",
        )
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Failure(f"{printable(str(file))} is not text in UTF-8") from None
    except OSError as error:
        raise Failure(f"cannot read {printable(str(file))}: {error.strerror}") from None
    return Schema(text, found, tuple(map(_reference, references)))


def _reference(given: str) -> Reference:
    # A name may be an address with '=' in it, a subject hardly has one.
    name, _, where = given.rpartition("=")
    subject, _, version = where.rpartition(":")
    if not name or not subject or not (version.isascii() and version.isdecimal() and int(version)):
        raise click.BadParameter(f"{given!r} is not NAME=SUBJECT:VERSION", param_hint="--reference")
    return Reference(name, subject, int(version))


def version_of(context: click.Context, parameter: click.Parameter, given: str | None) -> Any:
    """Return a version that is a number as a number, and `latest` as it is.

    Raises:
        BadParameter: it is neither.
    """
    if given is None or given == "latest":
        return given
    if not (given.isascii() and given.isdecimal() and 0 < int(given) < 1 << 31):
        raise click.BadParameter(f"{given!r} is not the number of a version, or latest")
    return int(given)
