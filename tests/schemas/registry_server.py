"""A schema registry for tests: an HTTP server on a free port that serves the routes of Confluent's API reference.

It is strict. A request that the reference does not know (a path, a query parameter, a field, a media type) is answered with 400 and kept
in `violations`, which `running_registry` checks at the end. Schemas are kept as their parsed form is equal: JSON in any layout,
Protobuf as compiled files. Like the original it gives one id to one schema in all subjects, and returns Protobuf as `.proto` text unless
it is asked for `format=serialized`; the text is a stand-in, because nobody compiles it here.

A test can make a subject reject new versions (`frozen`), ask for credentials (`authorization`), and let requests fail (`faults`).
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_MEDIA = "application/vnd.schemaregistry.v1+json"
_QUERY = {"normalize", "deleted", "format", "subject", "fetchMaxId", "defaultToGlobal", "verbose", "permanent"}
_BODY = {"schema", "schemaType", "references", "metadata", "ruleSet"}
_KINDS = ("AVRO", "JSON", "PROTOBUF")


class Rejected(Exception):
    """A request gets an error."""

    def __init__(self, status: int, code: int, message: str) -> None:
        self.status, self.code, self.message = status, code, message


class RegistryServer:
    """The registry's state, and what it has been asked."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, dict[int, int]] = {}
        self.requests: list[str] = []
        self.violations: list[str] = []
        self.frozen: set[str] = set()
        self.authorization: str | None = None
        self.faults: list[int] = []
        self.url = ""
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<RegistryServer url={self.url} schemas={len(self.schemas)}>"

    def add(self, subject: str, schema: Any, kind: str = "AVRO", references: list[dict[str, Any]] | None = None) -> int:
        """Register a schema without a request."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, "references": references or []}
        return int(self.register(subject, body)["id"])

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        routes: list[tuple[str, str, Callable[..., Any]]] = [
            ("GET", r"/schemas/ids/(\d+)", lambda number: self.schema(int(number), query)),
            ("GET", r"/schemas/ids/(\d+)/versions", lambda number: self.versions_of(int(number))),
            ("GET", r"/subjects", lambda: sorted(self.subjects)),
            ("GET", r"/subjects/([^/]+)/versions", lambda subject: sorted(self._subject(subject))),
            (
                "GET",
                r"/subjects/([^/]+)/versions/([^/]+)",
                lambda subject, version: self.version(subject, version, query),
            ),
            ("POST", r"/subjects/([^/]+)", lambda subject: self.lookup(subject, body)),
            ("POST", r"/subjects/([^/]+)/versions", lambda subject: self.register(subject, body)),
        ]
        for wanted, pattern, serve in routes:
            match = re.fullmatch(pattern, path)
            if match and wanted == method:
                with self._lock:
                    return serve(*(unquote(each) for each in match.groups()))
        raise Rejected(404, 404, "HTTP 404 Not Found")

    def schema(self, number: int, query: dict[str, list[str]]) -> dict[str, Any]:
        if number not in self.schemas:
            raise Rejected(404, 40403, f"Schema {number} not found")
        stored = dict(self.schemas[number])
        if stored.get("schemaType") == "PROTOBUF" and query.get("format") != ["serialized"]:
            stored["schema"] = 'syntax = "proto3"; // as text'
        return stored

    def versions_of(self, number: int) -> list[dict[str, Any]]:
        self.schema(number, {})
        every = [(subject, *each) for subject, versions in self.subjects.items() for each in versions.items()]
        return [{"subject": subject, "version": version} for subject, version, found in every if found == number]

    def version(self, subject: str, version: str, query: dict[str, list[str]]) -> dict[str, Any]:
        versions = self._subject(subject)
        if version != "latest" and not version.isdecimal():
            raise Rejected(422, 42202, f"The specified version '{version}' is not a valid version id.")
        number = max(versions) if version == "latest" else int(version)
        if number not in versions:
            raise Rejected(404, 40402, f"Version {number} not found.")
        schema_id = versions[number]
        return {"subject": subject, "version": number, "id": schema_id, **self.schema(schema_id, query)}

    def lookup(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        versions = self._subject(subject)
        wanted = comparable(self._checked(body))
        for number, schema_id in sorted(versions.items(), reverse=True):
            if comparable(self.schemas[schema_id]) == wanted:
                return {"subject": subject, "version": number, "id": schema_id, **self.schemas[schema_id]}
        raise Rejected(404, 40403, "Schema not found")

    def register(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        stored = self._checked(body)
        wanted = comparable(stored)
        known = [number for number, each in self.schemas.items() if comparable(each) == wanted]
        schema_id = known[0] if known else len(self.schemas) + 1
        versions = self.subjects.get(subject, {})
        if schema_id not in versions.values():
            if subject in self.frozen:
                raise Rejected(
                    409, 409, f"Schema being registered is incompatible with an earlier schema for {subject}"
                )
            self.schemas[schema_id] = stored
            self.subjects[subject] = {**versions, max(versions, default=0) + 1: schema_id}
        return {"id": schema_id}

    def _subject(self, subject: str) -> dict[int, int]:
        if subject not in self.subjects:
            raise Rejected(404, 40401, f"Subject '{subject}' not found.")
        return self.subjects[subject]

    def _checked(self, body: dict[str, Any]) -> dict[str, Any]:
        kind = body.get("schemaType") or "AVRO"
        if kind not in _KINDS:
            raise Rejected(422, 42201, f"Invalid schema type {kind}")
        stored = {"schema": body["schema"]} | ({} if kind == "AVRO" else {"schemaType": kind})
        references = body.get("references") or []
        for each in references:
            if set(each) != {"name", "subject", "version"}:
                raise Rejected(422, 422, f"reference {each}")
            self.version(each["subject"], str(each["version"]), {})
        if references:
            stored["references"] = references
        try:
            base64.b64decode(body["schema"], validate=True) if kind == "PROTOBUF" else json.loads(body["schema"])
        except ValueError:
            raise Rejected(422, 42201, "Either the input schema or one its references is invalid") from None
        return stored


def comparable(stored: dict[str, Any]) -> Any:
    is_json = stored.get("schemaType") != "PROTOBUF"
    text = json.loads(stored["schema"]) if is_json else stored["schema"]
    return json.dumps([stored.get("schemaType"), text, stored.get("references")], sort_keys=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: RegistryServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers["Content-Length"])))

    def _serve(self, data: bytes | None) -> None:
        registry = self.registry
        registry.requests.append(f"{self.command} {self.path}")
        if registry.faults and (status := registry.faults.pop(0)):
            if status < 0:
                self.close_connection = True
                return
            self._send(status, {"error_code": status * 100 + 1, "message": "a fault of the test"})
            return
        if registry.authorization is not None and self.headers.get("Authorization") != registry.authorization:
            self._send(401, {"error_code": 401, "message": "Unauthorized"})
            return
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        if wrong := self._violation(query, data):
            registry.violations.append(f"{self.command} {self.path}: {wrong}")
            self._send(400, {"error_code": 400, "message": wrong})
            return
        try:
            self._send(200, registry.answer(self.command, parts.path, query, data and json.loads(data)))
        except Rejected as error:
            self._send(error.status, {"error_code": error.code, "message": error.message})

    def _violation(self, query: dict[str, list[str]], data: bytes | None) -> str | None:
        if unknown := set(query) - _QUERY:
            return f"query parameters {unknown}"
        if data is None:
            return None if _MEDIA in self.headers.get("Accept", "") else f"Accept is {self.headers.get('Accept')}"
        if self.headers.get("Content-Type") != _MEDIA:
            return f"Content-Type is {self.headers.get('Content-Type')}"
        body = json.loads(data)
        wrong = {name for name, value in body.items() if name not in _BODY and value is not None}
        return f"fields {wrong}" if wrong or not isinstance(body.get("schema"), str) else None

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", _MEDIA)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def running_registry() -> Iterator[RegistryServer]:
    """Serve an empty registry; at the end no request may have broken a rule of the API."""
    registry = RegistryServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"registry": registry}))
    server.daemon_threads = True
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert registry.violations == []
