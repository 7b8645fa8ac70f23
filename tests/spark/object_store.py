"""An object store on loopback, for tests of what is kept in one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SERVER = """
import logging, sys
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
KEYS = ("them", "secret")


@contextmanager
def object_store() -> Iterator[str]:
    """Yield the address of a store with the bucket `lake`; it is a process of its own, as deltalake holds the interpreter's lock."""
    server = subprocess.Popen([sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    client_of(url).create_bucket(Bucket="lake")
    yield url
    server.terminate()
    server.wait()


def client_of(url: str) -> Any:
    """Return an ordinary client of the store."""
    import boto3  # type: ignore[import-untyped]

    return boto3.client(
        "s3", endpoint_url=url, aws_access_key_id=KEYS[0], aws_secret_access_key=KEYS[1], region_name="us-east-1"
    )
