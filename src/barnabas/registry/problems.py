"""The errors of requests: an HTTP status, Confluent's error code, and a sentence.

| code | is |
|---|---|
| 40401, 40402, 40403 | no such subject, version, schema |
| 40404, 40405 | the subject was deleted before; it must be deleted before it is deleted permanently |
| 40406, 40407 | the same for a version |
| 40408, 40409 | the subject has no compatibility level, no mode, of its own |
| 409 | the schema is not compatible with earlier versions |
| 42201 … 42209 | a schema, version, level, mode that is not valid; an operation that a mode or a reference forbids; a schema too large |
| 50001, 50002, 50003 | the cluster does not answer; not in time |

Source: the errors in Confluent's Schema Registry API reference.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.registry.levels import CompatibilityLevel, Mode
from barnabas.words.printable import printable

__all__ = [
    "Problem",
    "id_taken",
    "incompatible",
    "invalid_level",
    "invalid_mode",
    "invalid_schema",
    "invalid_version",
    "no_level",
    "no_mode",
    "not_permitted",
    "reference_exists",
    "schema_not_found",
    "subject_deleted",
    "subject_not_deleted",
    "subject_not_found",
    "version_deleted",
    "version_not_deleted",
    "version_not_found",
]


class Problem(Exception):
    """A request gets an error.

    Args:
        status: of HTTP.
        code: Confluent's.
        message: one line for the user.
    """

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message

    def to_json(self) -> dict[str, object]:
        """Return the response's body."""
        return {"error_code": self.code, "message": self.message}


def _not_found(code: int, message: str) -> Problem:
    return Problem(404, code, message)


def _unprocessable(code: int, message: str) -> Problem:
    return Problem(422, code, message)


def subject_not_found(subject: str) -> Problem:
    """Return 40401."""
    return _not_found(40401, f"Subject '{printable(subject)}' not found.")


def version_not_found(version: int) -> Problem:
    """Return 40402."""
    return _not_found(40402, f"Version {version} not found.")


def schema_not_found(schema_id: int | None = None) -> Problem:
    """Return 40403."""
    return _not_found(40403, "Schema not found" if schema_id is None else f"Schema {schema_id} not found")


def subject_deleted(subject: str) -> Problem:
    """Return 40404."""
    return _not_found(
        40404, f"Subject '{printable(subject)}' was deleted before; permanent=true deletes it permanently."
    )


def subject_not_deleted(subject: str) -> Problem:
    """Return 40405."""
    return _not_found(
        40405,
        f"Subject '{printable(subject)}' must be deleted first, without permanent=true, before it is permanently.",
    )


def version_deleted(subject: str, version: int) -> Problem:
    """Return 40406."""
    return _not_found(
        40406,
        f"Version {version} of subject '{printable(subject)}' was deleted before; permanent=true deletes it permanently.",
    )


def version_not_deleted(subject: str, version: int) -> Problem:
    """Return 40407."""
    return _not_found(
        40407,
        f"Version {version} of subject '{printable(subject)}' must be deleted first, without permanent=true, before it is "
        "permanently.",
    )


def no_level(subject: str) -> Problem:
    """Return 40408."""
    return _not_found(40408, f"Subject '{printable(subject)}' has no compatibility level of its own.")


def no_mode(subject: str) -> Problem:
    """Return 40409."""
    return _not_found(40409, f"Subject '{printable(subject)}' has no mode of its own.")


def incompatible(messages: Iterable[str]) -> Problem:
    """Return 409."""
    return Problem(
        409, 409, f"The schema is not compatible with an earlier version: {'; '.join(map(printable, messages))}"
    )


def invalid_schema(why: str) -> Problem:
    """Return 42201."""
    return _unprocessable(42201, f"The schema is not valid: {printable(why)}")


def invalid_version(given: str) -> Problem:
    """Return 42202."""
    return _unprocessable(
        42202, f"'{printable(given)}' is not a valid version: give a number from 1 to 2147483647, or latest"
    )


def invalid_level(given: object) -> Problem:
    """Return 42203."""
    levels = ", ".join(CompatibilityLevel)
    return _unprocessable(42203, f"'{printable(str(given))}' is not a compatibility level: {levels}")


def invalid_mode(given: object) -> Problem:
    """Return 42204."""
    return _unprocessable(42204, f"'{printable(str(given))}' is not a mode: {', '.join(Mode)}")


def not_permitted(why: str) -> Problem:
    """Return 42205."""
    return _unprocessable(42205, why)


def reference_exists(subject: str, version: int) -> Problem:
    """Return 42206."""
    return _unprocessable(42206, f"Other schemas refer to version {version} of subject '{printable(subject)}'.")


def id_taken(schema_id: int) -> Problem:
    """Return 42207."""
    return _unprocessable(42207, f"Id {schema_id} is another schema's, or the schema has another id.")
