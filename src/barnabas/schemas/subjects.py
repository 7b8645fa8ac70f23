"""The subjects of a registry as a person sees and changes them; nothing is kept, so each answer is the registry's of now.

    GET    /subjects                                  all subjects
    GET    /subjects/{subject}/versions[/{v}]         the versions of one, and one with its schema
    GET    /schemas/ids/{id}                          a schema
    GET    /config/{subject}?defaultToGlobal=true     the compatibility level that counts for a subject
    POST   /subjects/{subject}[/versions]             find a schema, register it
    POST   /compatibility/subjects/{subject}/versions whether a schema may be the next version
    DELETE /subjects/{subject}[/versions/{v}]         delete, with `permanent=true` for good

- Protobuf comes as `.proto` text, unlike in `registry`.
- Karapace compares with one version only: a registry that does not know the route for all versions is asked about the latest.

Source: Confluent's Schema Registry API reference.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from barnabas.schemas.errors import RegistryError, SchemaNotFound
from barnabas.schemas.exchange import Answer, Exchange
from barnabas.schemas.registry import answered
from barnabas.schemas.schema import RegisteredSchema, Schema
from barnabas.schemas.settings import RegistrySettings
from barnabas.words.printable import on_one_line

__all__ = ["Registered", "SubjectSummary", "Subjects"]

_SOFT_DELETED = 40404
_DESCRIPTION = re.compile(r"description:'(?P<sentence>.*?)'(?:, additionalInfo:|\}$)", re.S)
_CONTEXT = ("{oldSchema", "{validateFields", "{compatibility")
FoundT = TypeVar("FoundT")


class SubjectSummary(NamedTuple):
    """A subject in a list.

    Attributes:
        kind: AVRO, JSON or PROTOBUF: that of the last version.
        versions: their numbers.
        latest_id: the id of the last version's schema.
        level: the compatibility level; None if the registry does not say it.
    """

    name: str
    kind: str
    versions: list[int]
    latest_id: int
    level: str | None


class Registered(NamedTuple):
    """A version that `Subjects.put` has found or made."""

    version: int
    schema_id: int
    is_new: bool


class Subjects:
    """The subjects of a registry.

    Args:
        settings: where it is.
        sleep: waits for seconds.
    """

    def __init__(self, settings: RegistrySettings, sleep: Callable[[float], None] = time.sleep) -> None:
        self._exchange = Exchange(settings, sleep)
        self._address = settings.urls[0]

    def __repr__(self) -> str:
        return f"<Subjects registry={self._address}>"

    def names(self) -> list[str]:
        """Return the names of all subjects.

        Raises:
            RegistryError: the registry does not serve the request.
        """
        return self._read(self._get("/subjects", "the list of subjects"), lambda body: [str(each) for each in body])

    def summary(self, subject: str) -> SubjectSummary:
        """Return a subject's line of a list; errors as in `version`."""
        versions = self.versions(subject)
        latest = self.version(subject)
        return SubjectSummary(subject, latest.schema.kind, versions, latest.schema_id, self._level(subject))

    def versions(self, subject: str) -> list[int]:
        """Return the numbers of a subject's versions; errors as in `version`."""
        body = self._get(f"{_path(subject)}/versions", f"subject {subject}")
        return self._read(body, lambda body: [int(each) for each in body])

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        """Return a version of a subject.

        Raises:
            SchemaNotFound: there is no such subject or version.
            RegistryError: the registry does not serve the request.
        """
        what = f"version {version} of subject {subject}"
        return self._read(self._get(f"{_path(subject)}/versions/{version}", what), _registered)

    def schema(self, schema_id: int) -> Schema:
        """Return the schema with an id; errors as in `version`."""
        return self._read(self._get(f"/schemas/ids/{schema_id}", f"schema {schema_id}"), Schema.from_json)

    def put(self, subject: str, schema: Schema) -> Registered:
        """Make a schema a version of a subject, unless one of its versions is the schema.

        Raises:
            IncompatibleSchema: the subject's compatibility level forbids it.
            InvalidSchema: the registry cannot parse it.
            RegistryError: the registry does not serve the request.
        """
        found = self._find(subject, schema)
        if found is not None:
            return Registered(found.version, found.schema_id, is_new=False)
        what = f"a new version of subject {subject}"
        answered(self._exchange.ask(f"{_path(subject)}/versions", schema.to_json()), what)
        made = self._find(subject, schema)
        if made is None:
            raise RegistryError(f"{self._address} has registered {what}, and does not find it")
        return Registered(made.version, made.schema_id, is_new=True)

    def problems(self, subject: str, schema: Schema) -> list[str]:
        """Return a sentence for each reason why a schema cannot be the next version of a subject; nothing if it can.

        Raises:
            InvalidSchema: the registry cannot parse it.
            RegistryError: the registry does not serve the request.
        """
        path = f"/compatibility{_path(subject)}/versions"
        what = f"the compatibility with subject {subject}"
        answer = self._exchange.ask(f"{path}?verbose=true", schema.to_json())
        if answer.status in (404, 405) and _code(answer) not in (40401, 40402, 40403):
            answer = self._exchange.ask(f"{path}/latest?verbose=true", schema.to_json())
        try:
            body = answered(answer, what)
        except SchemaNotFound:
            return []  # The subject has no version yet.
        is_compatible = self._read(body, lambda body: bool(body["is_compatible"]))
        messages = [str(each) for each in body.get("messages") or ()]
        return [] if is_compatible else _sentences(messages) or ["the registry does not say why"]

    def delete(self, subject: str, version: int | str | None = None, *, permanent: bool = False) -> list[int]:
        """Delete a version of a subject, or all.

        A registry deletes for good only what was deleted before, so `permanent` does both.

        Returns:
            the numbers of the deleted versions.

        Raises:
            SchemaNotFound: there is no such subject or version.
            RegistryError: another schema refers to it, or the registry does not serve the request.
        """
        path = _path(subject) if version is None else f"{_path(subject)}/versions/{version}"
        what = f"subject {subject}" if version is None else f"version {version} of subject {subject}"
        answer = self._exchange.ask(path, method="DELETE")
        if not permanent:
            return self._numbers(answered(answer, what))
        if _code(answer) not in (_SOFT_DELETED, 40406):
            deleted = self._numbers(answered(answer, what))
            if version is not None:  # `latest` is another one now.
                path = f"{_path(subject)}/versions/{deleted[0]}"
        return self._numbers(answered(self._exchange.ask(f"{path}?permanent=true", method="DELETE"), what))

    def _find(self, subject: str, schema: Schema) -> RegisteredSchema | None:
        try:
            body = answered(self._exchange.ask(_path(subject), schema.to_json()), f"the schema in subject {subject}")
        except SchemaNotFound:
            return None
        return self._read(body, _registered)

    def _level(self, subject: str) -> str | None:
        answer = self._exchange.ask(f"/config/{quote(subject, safe='')}?defaultToGlobal=true")
        body = answer.body if isinstance(answer.body, dict) else {}
        return body.get("compatibilityLevel")

    def _get(self, path: str, what: str) -> Any:
        return answered(self._exchange.ask(path), what)

    def _numbers(self, body: Any) -> list[int]:
        return self._read(body, lambda body: [int(each) for each in (body if isinstance(body, list) else [body])])

    def _read(self, body: Any, read: Callable[[Any], FoundT]) -> FoundT:
        try:
            return read(body)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise RegistryError(
                f"the schema registry {self._address} answers with other fields than a registry's"
            ) from None


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _registered(body: Any) -> RegisteredSchema:
    return RegisteredSchema(str(body["subject"]), int(body["version"]), int(body["id"]), Schema.from_json(body))


def _code(answer: Answer) -> object:
    return answer.body.get("error_code") if isinstance(answer.body, dict) else None


def _sentences(messages: list[str]) -> list[str]:
    """Return what a registry says against a schema; Confluent's packs a sentence into `{errorType:…, description:'…', …}`."""
    found = []
    for message in messages:
        packed = _DESCRIPTION.search(message)
        if packed is not None:
            found.append(packed["sentence"])
        elif not message.startswith(_CONTEXT):
            found.append(message)
    return [on_one_line(each).rstrip(".") for each in found]
