"""`/healthz`, `/readyz` and `/` of the HTTP port: what Docker, Kubernetes and a person with a browser ask.

    path        200                                          503, with the reason in one line
    /healthz    the process answers                          never
    /readyz     the broker is unfenced and serves requests   while it starts or stops, and while it is fenced

A liveness check should ask `/healthz`, which stays 200 while a start takes long or the controller is away: a restart would not help. A
readiness check, and Docker's health check, should ask `/readyz`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from barnabas.net.http_listener import Answer, Route

__all__ = ["health_routes"]

_TEXT = "text/plain; charset=utf-8"
_PAGE = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>barnabas</title>
<h1>barnabas</h1>
<ul>
<li><a href="/metrics">/metrics</a>: for Prometheus
<li><a href="/healthz">/healthz</a>: the process answers
<li><a href="/readyz">/readyz</a>: the broker serves requests
</ul>
</html>
"""


def health_routes(not_ready: Callable[[], str]) -> Mapping[str, Route]:
    """Return the routes.

    Args:
        not_ready: returns why the broker is not ready, in a few words; empty if it is.
    """

    async def healthz() -> Answer:
        return Answer(_TEXT, b"ok\n")

    async def readyz() -> Answer:
        reason = not_ready()
        if reason:
            return Answer(_TEXT, f"not ready: {reason}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)
        return Answer(_TEXT, b"ready\n")

    async def index() -> Answer:
        return Answer("text/html; charset=utf-8", _PAGE)

    # Until the broker has something to measure, its metrics are not ready either.
    return {"/": index, "/healthz": healthz, "/readyz": readyz, "/metrics": readyz}
