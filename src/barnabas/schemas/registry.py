"""The client of a schema registry, over the routes that Confluent publishes.

    GET  /schemas/ids/{id}                    a schema
    GET  /schemas/ids/{id}/versions           the subjects and versions that have it
    GET  /subjects                            all subjects
    GET  /subjects/{subject}/versions         the versions of one
    GET  /subjects/{subject}/versions/{v}     one version, or `latest`
    POST /subjects/{subject}                  the version that a schema is
    POST /subjects/{subject}/versions         make a schema a version, or find that it is one

- An id, and a version by its number, name one schema for ever, so they are asked for once. `latest` and the list of versions count for
  `cache.latest.ttl.sec`, what a registry does not have for ten seconds. Only a registry's own answers are kept, never that it did not
  answer.
- Protobuf comes compiled (`format=serialized`).
- A client is pickled as its settings: each process has its own caches.

Source: Confluent's Schema Registry API reference.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

from barnabas.schemas.errors import IncompatibleSchema, InvalidSchema, RegistryError, SchemaError, SchemaNotFound
from barnabas.schemas.exchange import Answer, Exchange
from barnabas.schemas.schema import RegisteredSchema, Schema
from barnabas.schemas.settings import RegistrySettings
from barnabas.words.printable import on_one_line

__all__ = ["SchemaRegistry", "answered", "raise_error"]

_SERIALIZED = "?format=serialized"
_MISSING = (40401, 40402, 40403)
_LONGEST_MESSAGE = 500
_MISSING_TTL_S = 10.0
"""A registry's copies may lag behind; until then a batch with one unknown id in all its rows asks once."""
FoundT = TypeVar("FoundT")


class SchemaRegistry:
    """A schema registry.

    Args:
        settings: where it is.
        sleep: waits for seconds.
        clock: returns seconds that never go back.
    """

    def __init__(
        self,
        settings: RegistrySettings,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._exchange = Exchange(settings, sleep)
        self._clock = clock
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._kept_until: dict[tuple[Any, ...], tuple[float, Any]] = {}

    def __repr__(self) -> str:
        return f"<SchemaRegistry urls={','.join(self.settings.urls)} kept={len(self._kept)}>"

    def __reduce__(self) -> tuple[type[SchemaRegistry], tuple[RegistrySettings]]:
        return SchemaRegistry, (self.settings,)

    @property
    def name(self) -> str:
        """Its address, for messages."""
        return f"the schema registry {self.settings.urls[0]}"

    def check(self) -> None:
        """Ask for a schema, which may exist or not: this needs no more rights than decoding does.

        Raises:
            RegistryError: the registry does not serve the request.
        """
        with suppress(SchemaNotFound):
            self.by_id(1)

    def by_id(self, schema_id: int) -> Schema:
        """Return a schema.

        Raises:
            SchemaNotFound: no schema has this id.
            RegistryError: the registry does not serve the request.
        """
        what = f"schema {schema_id}"
        return self._once(("id", schema_id), lambda: self._schema(f"/schemas/ids/{schema_id}{_SERIALIZED}", what))

    def versions_of_id(self, schema_id: int) -> list[tuple[str, int]]:
        """Return the subjects and versions that have a schema; errors as in `by_id`."""
        found = self._get(f"/schemas/ids/{schema_id}/versions", f"schema {schema_id}")
        return [(str(each["subject"]), int(each["version"])) for each in self._list(found)]

    def subjects(self) -> list[str]:
        """Return the names of all subjects.

        Raises:
            RegistryError: the registry does not serve the request.
        """
        return [str(each) for each in self._list(self._get("/subjects", "the list of subjects"))]

    def versions(self, subject: str) -> list[int]:
        """Return the numbers of a subject's versions; errors as in `version`."""
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return self._for_a_while(
            ("versions", subject), lambda: [int(each) for each in self._list(self._get(path, f"subject {subject}"))]
        )

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        """Return a version of a subject, by its number or as `latest`.

        Raises:
            SchemaNotFound: there is no such subject or version.
            RegistryError: the registry does not serve the request.
        """
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}{_SERIALIZED}"
        ask = lambda: self._registered(self._get(path, f"version {version} of subject {subject}"))  # noqa: E731
        if version != "latest":
            return self._once(("version", subject, version), ask)
        found = self._for_a_while(("latest", subject), ask)
        return self._once(("version", subject, found.version), lambda: found)

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Return the version that a schema is.

        Raises:
            SchemaNotFound: the subject does not exist, or does not have the schema.
            InvalidSchema: the registry cannot parse it.
            RegistryError: the registry does not serve the request.
        """
        path = f"/subjects/{quote(subject, safe='')}"

        def ask() -> RegisteredSchema:
            found = answered(self._exchange.ask(path, schema.to_json()), f"the schema in subject {subject}")
            return self._registered(found)

        return self._once(("lookup", subject, schema), ask)

    def register(self, subject: str, schema: Schema) -> int:
        """Make a schema a version of a subject, if it is none, and return its id.

        Raises:
            IncompatibleSchema: the subject's compatibility level forbids it.
            InvalidSchema: the registry cannot parse it.
            RegistryError: the registry does not serve the request.
        """
        path = f"/subjects/{quote(subject, safe='')}/versions"

        def ask() -> int:
            answer = self._exchange.ask(path, schema.to_json())
            found = answered(answer, f"a new version of subject {subject}")
            self._kept_until.pop(("latest", subject), None)
            self._kept_until.pop(("versions", subject), None)
            return int(self._read(lambda: found["id"]))

        return self._once(("register", subject, schema), ask)

    def _once(self, key: tuple[Any, ...], ask: Callable[[], FoundT]) -> FoundT:
        """Ask for something that does not change; not found counts for a while."""
        if key in self._kept:
            return self._kept[key]  # type: ignore[no-any-return]
        until, missing = self._kept_until.get(key, (0.0, None))
        if missing is not None and self._clock() < until:
            raise SchemaNotFound(*missing.args)
        try:
            self._kept[key] = found = ask()
        except SchemaNotFound as error:
            self._kept_until[key] = (self._clock() + _MISSING_TTL_S, error)
            raise
        return found

    def _for_a_while(self, key: tuple[Any, ...], ask: Callable[[], FoundT]) -> FoundT:
        until, found = self._kept_until.get(key, (0.0, None))
        if found is None or self._clock() >= until:
            found = ask()
            self._kept_until[key] = (self._clock() + self.settings.latest_ttl_s, found)
        return found  # type: ignore[no-any-return]

    def _get(self, path: str, what: str) -> Any:
        return answered(self._exchange.ask(path), what)

    def _schema(self, path: str, what: str) -> Schema:
        found = self._get(path, what)
        return self._read(lambda: Schema.from_json(found))

    def _registered(self, body: Any) -> RegisteredSchema:
        return self._read(
            lambda: RegisteredSchema(
                str(body["subject"]), int(body["version"]), int(body["id"]), Schema.from_json(body)
            )
        )

    def _list(self, body: Any) -> list[Any]:
        if not isinstance(body, list):
            raise RegistryError(f"{self.name} answers no list: is it the address of a registry?")
        return body

    def _read(self, read: Callable[[], FoundT]) -> FoundT:
        try:
            return read()
        except (KeyError, TypeError, ValueError):
            raise RegistryError(f"{self.name} answers with other fields than a registry's") from None


def answered(answer: Answer, what: str) -> Any:
    """Return the JSON of an answer.

    Args:
        what: was asked for.

    Raises:
        SchemaError: the answer is an error; the class says which.
    """
    if 200 <= answer.status < 300 and answer.body is not None:
        return answer.body
    fields = answer.body if isinstance(answer.body, dict) else {}
    raise_error(
        what, answer, fields.get("error_code"), on_one_line(str(fields.get("message") or ""))[:_LONGEST_MESSAGE]
    )


def raise_error(what: str, answer: Answer, code: Any, message: str) -> NoReturn:
    """Raise the error of an answer.

    Args:
        what: was asked for.
        answer: of the registry.
        code: the registry's; None if the answer has none.
        message: the registry's.
    """
    reason = f": {message}" if message else ""
    if code in _MISSING:
        raise SchemaNotFound(f"{answer.url} does not have {what} ({code}{reason})")
    if answer.status == 409:
        raise IncompatibleSchema(
            f"{answer.url} rejects {what}, which is incompatible with an earlier one{reason}. Change the schema, or the subject's "
            "compatibility level"
        )
    if code == 42201:
        raise InvalidSchema(f"{answer.url} rejects {what}: the schema is not valid{reason}")
    if answer.status in (401, 403):
        raise RegistryError(
            f"{answer.url} answers {answer.status} to a request for {what}: give credentials that may do this, with "
            "basic.auth.user.info or bearer.auth.token"
        )
    if code is None and answer.status in (200, 404, 405):
        raise RegistryError(
            f"{answer.url} answers {answer.status} to a request for {what}: it is not a schema registry's address"
        )
    raise _other(what, answer, code, reason)


def _other(what: str, answer: Answer, code: Any, reason: str) -> SchemaError:
    return RegistryError(f"{answer.url} answers {code or answer.status} to a request for {what}{reason}")
