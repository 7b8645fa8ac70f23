"""An object store on loopback, for tests of what is kept in one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

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


@contextmanager
def reader_of(url: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a user that may only read; meanwhile the store checks every request's keys and rights."""
    iam = client_of(url, "iam")
    iam.create_user(UserName="reader")
    reading = {"Effect": "Allow", "Action": ["s3:Get*", "s3:List*"], "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [reading]})
    iam.put_user_policy(UserName="reader", PolicyName="reading", PolicyDocument=policy)
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    unchecked_requests(url, 0)
    try:
        yield key["AccessKeyId"], key["SecretAccessKey"]
    finally:
        unchecked_requests(url, 1_000_000)


def unchecked_requests(url: str, count: int) -> None:
    """Let the store check keys and rights after so many requests."""
    body = str(count).encode()
    urlopen(Request(f"{url}/moto-api/reset-auth", body, {"Content-Type": "text/plain"})).close()


def client_of(url: str, service: str = "s3") -> Any:
    """Return an ordinary client of the store."""
    import boto3  # type: ignore[import-untyped]

    return boto3.client(
        service, endpoint_url=url, aws_access_key_id=KEYS[0], aws_secret_access_key=KEYS[1], region_name="us-east-1"
    )
