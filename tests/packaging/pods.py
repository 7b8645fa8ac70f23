"""The processes that the pods of packaging/kubernetes would run, on this machine: without containers, and with addresses of 127.0.0.1."""

from __future__ import annotations

import base64
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

from tests.packaging.kubernetes import Object, container, environment, pod_names, stateful_sets
from tests.packaging.test_containers import image_environment, instructions
from tests.process.process import ENVIRONMENT

COMMAND = Path(sys.executable).with_name("barnabas")
READY_S = 60
SECRETS = "secrets"


def on_loopback(
    variables: Mapping[str, str], ports: Callable[[str, str], str], pod: str, folder: Path
) -> dict[str, str]:
    """Return a pod's variables with an address of this machine in place of each name and port of a pod, and another folder."""
    found = {}
    for name, value in variables.items():
        value = re.sub(
            r"([\w-]+)\.barnabas-nodes\.kafka\.svc:(\d+)", lambda at: f"127.0.0.1:{ports(at[1], at[2])}", value
        )
        value = re.sub(r"(?<=://):(\d+)", lambda at: f"127.0.0.1:{ports(pod, at[1])}", value)
        value = value.replace("0.0.0.0:9308", f"127.0.0.1:{ports(pod, '9308')}")
        value = value.replace("/etc/barnabas/secrets", str(folder / SECRETS))
        found[name] = value.replace("/var/lib/barnabas", str(folder / pod))
    return found


class Pods:
    """The processes of all pods of these objects, each with what its container would get.

    Args:
        folder: for their volumes, and the Secret's files.
        stack: ends them.
    """

    def __init__(self, found: list[Object], folder: Path, stack: ExitStack) -> None:
        self._objects = found
        self.names = [pod for each in stateful_sets(found) for pod in pod_names(each)]
        with ExitStack() as held:
            self._free = {(pod, port): _free_port(held) for pod in self.names for port in ("9092", "9093", "9308")}
        (folder / SECRETS).mkdir()
        for secret in (each for each in found if each["kind"] == "Secret"):
            for name, encoded in secret["data"].items():
                (folder / SECRETS / name).write_bytes(base64.b64decode(encoded))
        (entrypoint,) = [re.findall(r'"(.+?)"', each) for each in instructions("ENTRYPOINT")]
        assert entrypoint == ["barnabas"]
        self.processes = {}
        self.logs = {pod: folder / f"{pod}.log" for pod in self.names}
        for each in stateful_sets(found):
            for pod in pod_names(each):
                variables = image_environment() | environment(found, each, pod)
                log = stack.enter_context(self.logs[pod].open("w"))
                # As in a container: the volume is there, and barnabas makes its folder in it.
                (folder / pod).mkdir()
                process = subprocess.Popen(
                    [str(COMMAND), *container(each)["args"]],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env=ENVIRONMENT | on_loopback(variables, self.port, pod, folder),
                )
                stack.callback(process.wait)
                stack.callback(process.kill)
                self.processes[pod] = process

    def port(self, pod: str, port: str) -> str:
        return self._free[pod, port]

    def wait_until_ready(self) -> None:
        """Wait for the line that each prints, and then ask as the kubelet does: the port serves a moment before the broker is unfenced."""
        for pod, process in self.processes.items():
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line == f"barnabas ready on 127.0.0.1:{self.port(pod, '9092')}\n", self.logs[pod].read_text()
        deadline = time.monotonic() + READY_S
        for each in stateful_sets(self._objects):
            for pod in pod_names(each):
                for kind in ("startup", "readiness", "liveness"):
                    probe = container(each)[f"{kind}Probe"]["httpGet"]
                    scheme = probe.get("scheme", "HTTP").lower()
                    while _status(f"{scheme}://127.0.0.1:{self.port(pod, '9308')}{probe['path']}") != HTTPStatus.OK:
                        assert time.monotonic() < deadline, f"{pod} is not ready"

    def stop(self) -> list[int]:
        """Stop all at the same time, as Kubernetes does; return the exit codes."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        return [process.wait(60) for process in self.processes.values()]


def _status(url: str) -> int:
    # The kubelet does not verify certificates, either.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=5, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _free_port(held: ExitStack) -> str:
    found = held.enter_context(socket.socket())
    found.bind(("127.0.0.1", 0))
    return str(found.getsockname()[1])
