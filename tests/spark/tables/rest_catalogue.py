"""A REST catalogue of Iceberg tables, for tests: a server on loopback, which keeps them in pyiceberg's SQL catalogue.

It serves the routes of the Iceberg project's "REST Catalog Open API" that a writer and a reader of tables use, with a prefix and a
bearer token, and its error model. What it does not know it answers with 400 and keeps in `violations`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

TOKEN = "a-token"
_CODES: dict[type[Exception], int] = {
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
    CommitFailedException: 409,
}


class RestCatalogue:
    """The catalogue's tables, and how it behaves.

    Attributes:
        lost: how many commits are made and answered with 502, as by a proxy that lost the answer.
    """

    def __init__(self, folder: Path) -> None:
        self.tables = SqlCatalog("kept", uri=f"sqlite:///{folder}/kept.db", warehouse=f"file://{folder}/warehouse")
        self.violations: list[str] = []
        self.lost = 0
        self.url = ""
        self.lock = threading.Lock()

    @property
    def properties(self) -> dict[str, str]:
        """What a client of it is given."""
        return {"type": "rest", "uri": self.url, "token": TOKEN}

    def answer(self, method: str, path: str, body: str) -> tuple[int, Any]:
        if (method, path) == ("GET", "/v1/config"):
            return 200, {"defaults": {}, "overrides": {"prefix": "of-tests"}}
        found = re.fullmatch(r"/v1/of-tests/namespaces(?:/(\w+)(/tables(?:/(\w+))?)?)?", path)
        namespace, tables, table = found.groups() if found else (None, None, None)
        if method == "POST" and found and namespace is None:
            (name,) = json.loads(body)["namespace"]
            self.tables.create_namespace(name)
            return 200, {"namespace": [name], "properties": {}}
        if method in ("GET", "HEAD") and namespace is not None and tables is None:
            return 200, {"namespace": [namespace], "properties": self.tables.load_namespace_properties(namespace)}
        if method == "POST" and tables is not None and table is None:
            return 200, self._created(f"{namespace}", json.loads(body))
        if method == "GET" and table is not None:
            return 200, _described(self.tables.load_table((f"{namespace}", table)))
        if method == "POST" and table is not None:
            wanted = CommitTableRequest.model_validate_json(body)
            named = cast("Table", SimpleNamespace(name=lambda: (f"{namespace}", table)))
            made = self.tables.commit_table(named, wanted.requirements, wanted.updates)
            if self.lost:
                self.lost -= 1
                return 502, _error(502, "BadGateway", "the answer is lost")
            return 200, _described(made)
        self.violations.append(f"{method} {path}")
        return 400, _error(400, "BadRequest", "no such route")

    def _created(self, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
        # In the API these three are optional.
        wanted = CreateTableRequest.model_validate(
            {"location": None, "partition-spec": None, "write-order": None} | body
        )
        # A writer of ours creates a table in a transaction; another kind of creation has no place here.
        assert wanted.stage_create
        made = self.tables.create_table_transaction(
            (namespace, wanted.name), wanted.table_schema, properties=wanted.properties, location=wanted.location,
            partition_spec=wanted.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            sort_order=wanted.write_order or UNSORTED_SORT_ORDER,
        )  # fmt: skip
        return {"metadata": json.loads(made.table_metadata.model_dump_json()), "config": {}}


def _described(table: Any) -> dict[str, Any]:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }


def _error(code: int, kind: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    catalogue: RestCatalogue

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._serve("HEAD")

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def _serve(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            status, answer = 401, _error(401, "NotAuthorizedException", "no such token")
        else:
            try:
                with self.catalogue.lock:
                    status, answer = self.catalogue.answer(method, self.path, body)
            except tuple(_CODES) as error:
                status = _CODES[type(error)]
                answer = _error(status, type(error).__name__, str(error))
        data = b"" if method == "HEAD" else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def rest_catalogue(folder: Path) -> Iterator[RestCatalogue]:
    """Serve a catalogue without tables; at the end no request may have been one that the API does not have."""
    catalogue = RestCatalogue(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"catalogue": catalogue}))
    server.daemon_threads = True
    catalogue.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield catalogue
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert catalogue.violations == []
