"""Requests to a registry, as a client of Confluent's routes sends them."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
PATIENCE_SECONDS = 60


class Asking:
    """A client of one registry."""

    def __init__(self, url: str) -> None:
        self.url = url

    def text(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, str]:
        """Return the status and the body of an answer."""
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE_SECONDS)
        content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, content, {"content-type": MEDIA_TYPE, "accept": MEDIA_TYPE, **headers})
            answer = connection.getresponse()
            assert answer.headers["content-type"] == MEDIA_TYPE
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON of an answer: the result, or the error's code."""
        status, text = self.text(method, path, body)
        found = json.loads(text)
        return found if status == 200 else found["error_code"]

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def put(self, path: str, **body: object) -> Any:
        return self.ask("PUT", path, body)

    def delete(self, path: str) -> Any:
        return self.ask("DELETE", path)

    def register(self, subject: str, schema: object, kind: str = "AVRO", **more: object) -> Any:
        """Return the id of a schema, or the error's code."""
        found = self.ask("POST", f"/subjects/{quote(subject, safe='')}/versions", _body(schema, kind, more))
        return found["id"] if isinstance(found, dict) else found

    def look_up(self, subject: str, schema: object, query: str = "", kind: str = "AVRO") -> Any:
        return self.ask("POST", f"/subjects/{subject}{query}", _body(schema, kind, {}))

    def check(self, path: str, schema: object, kind: str = "AVRO") -> Any:
        return self.ask("POST", f"/compatibility/subjects/{path}", _body(schema, kind, {}))


def _body(schema: object, kind: str, more: dict[str, object]) -> dict[str, object]:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return {"schema": text, **({} if kind == "AVRO" else {"schemaType": kind}), **more}


def record(*fields: str, name: str = "Order") -> dict[str, Any]:
    """Return an Avro record of texts; a field that ends with `?` has a default."""
    made = [
        {"name": each.rstrip("?"), "type": "string", **({"default": ""} if each.endswith("?") else {})}
        for each in fields
    ]
    return {"type": "record", "name": name, "fields": made}
