"""The processes that the pods of packaging/kubernetes would run, on this machine: without containers, and with addresses of 127.0.0.1."""

from __future__ import annotations

import base64
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

from tests.packaging.kubernetes import Object, container, environment, init_container, pod_names, stateful_sets
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
    """The processes of all pods of these objects, each with what its containers would get: first the one that tests the disk.

    Args:
        folder: for their volumes, and the Secret's files.
        stack: ends them.

    Attributes:
        processes: those that run, by pod.
        logs: where each broker logs.
        self_tests: what the init container of each pod printed.
    """

    def __init__(self, found: list[Object], folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._free: dict[tuple[str, str], str] = {}
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.logs: dict[str, Path] = {}
        self.self_tests: dict[str, str] = {}
        (folder / SECRETS).mkdir()
        for secret in (each for each in found if each["kind"] == "Secret"):
            for name, encoded in secret["data"].items():
                (folder / SECRETS / name).write_bytes(base64.b64decode(encoded))
        (entrypoint,) = [re.findall(r'"(.+?)"', each) for each in instructions("ENTRYPOINT")]
        assert entrypoint == ["barnabas"]
        self.apply(found)

    @property
    def names(self) -> list[str]:
        return list(self.processes)

    def apply(self, found: list[Object]) -> dict[str, int]:
        """Start and stop pods until those of these objects run; return the exit codes of the stopped ones."""
        self._objects = found
        wanted = {pod: each for each in stateful_sets(found) for pod in pod_names(each)}
        ended = self._stop([pod for pod in self.processes if pod not in wanted])
        new = {pod: each for pod, each in wanted.items() if pod not in self.processes}
        with ExitStack() as held:
            self._free |= {(pod, port): _free_port(held) for pod in new for port in ("9092", "9093", "9308")}
        tests = {pod: self._self_test(pod, each) for pod, each in new.items()}
        for pod, process in tests.items():
            self.self_tests[pod], _ = process.communicate(timeout=READY_S)
            assert process.returncode == 0, self.self_tests[pod]
            self.processes[pod] = self._start(pod, new[pod])
        return ended

    def _self_test(self, pod: str, stateful_set: Object) -> subprocess.Popen[str]:
        # The volume is there, and barnabas makes its folder in it.
        (self._folder / pod).mkdir(exist_ok=True)
        words = [*init_container(stateful_set)["command"], *init_container(stateful_set)["args"]]
        here = [word.replace("/var/lib/barnabas", str(self._folder / pod)) for word in words]
        path = {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
        process = subprocess.Popen(
            here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT | path
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def _start(self, pod: str, stateful_set: Object) -> subprocess.Popen[str]:
        variables = image_environment() | environment(self._objects, stateful_set, pod)
        self.logs[pod] = self._folder / f"{pod}.log"
        log = self._stack.enter_context(self.logs[pod].open("a"))
        process = subprocess.Popen(
            [str(COMMAND), *container(stateful_set)["args"]],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=ENVIRONMENT | on_loopback(variables, self.port, pod, self._folder),
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def port(self, pod: str, port: str) -> str:
        return self._free[pod, port]

    def wait_until_ready(self, *names: str) -> None:
        """Wait for the line that each prints, and then ask as the kubelet does: the port serves a moment before the broker is unfenced."""
        of = {pod: each for each in stateful_sets(self._objects) for pod in pod_names(each)}
        for pod in names or self.names:
            stdout = self.processes[pod].stdout
            assert stdout is not None
            line = stdout.readline()
            assert line == f"barnabas ready on 127.0.0.1:{self.port(pod, '9092')}\n", self.logs[pod].read_text()
        deadline = time.monotonic() + READY_S
        for pod in names or self.names:
            for kind in ("startup", "readiness", "liveness"):
                probe = container(of[pod])[f"{kind}Probe"]["httpGet"]
                scheme = probe.get("scheme", "HTTP").lower()
                while _status(f"{scheme}://127.0.0.1:{self.port(pod, '9308')}{probe['path']}") != HTTPStatus.OK:
                    assert time.monotonic() < deadline, f"{pod} is not ready"

    def stop(self) -> list[int]:
        """Stop all at the same time, as Kubernetes does; return the exit codes."""
        return list(self._stop(self.names).values())

    def _stop(self, names: Sequence[str]) -> dict[str, int]:
        for name in names:
            self.processes[name].send_signal(signal.SIGTERM)
        return {name: self.processes.pop(name).wait(60) for name in names}


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
