"""packaging/kubernetes: kustomize builds it, its parts fit together, and what the pods would run forms a cluster without Kubernetes."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

import pytest

from barnabas.client.admin import Admin
from barnabas.config.config import BrokerConfig
from barnabas.config.sources import ConfigSources
from tests.packaging.kubernetes import (
    FOLDER,
    OVERLAYS,
    Object,
    container,
    environment,
    kustomized,
    needs_kubectl,
    objects,
    of_kind,
    of_the_page,
    pod_names,
)
from tests.packaging.test_containers import image_environment, instructions
from tests.process.process import ENVIRONMENT

pytestmark = needs_kubectl

COMMAND = Path(sys.executable).with_name("barnabas")
SECRET_WORDS = re.compile("password|secret|jaas|token|key(?!store|_location)", re.IGNORECASE)
READY_S = 60


@pytest.fixture(scope="module")
def of_page(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """What the page's first kustomization makes: three nodes, open to their namespace, and a broker more."""
    return objects(kustomized(of_the_page(tmp_path_factory.mktemp("page"), 0)))


def settings(found: list[Object], workload: Object, pod: str, zone: str = "") -> BrokerConfig:
    variables = image_environment() | environment(found, workload, pod, zone)
    return BrokerConfig.from_properties(ConfigSources(None, variables).properties)


def stateful_sets(found: list[Object]) -> list[Object]:
    return [each for each in found if each["kind"] == "StatefulSet"]


def test_the_number_of_a_pod_is_the_id_of_its_node(of_page: list[Object]) -> None:
    configs = {pod: settings(of_page, each, pod) for each in stateful_sets(of_page) for pod in pod_names(each)}
    assert {pod: (config.node_id, config.process_roles) for pod, config in configs.items()} == {
        "barnabas-0": (0, ("broker", "controller")),
        "barnabas-1": (1, ("broker", "controller")),
        "barnabas-2": (2, ("broker", "controller")),
        "barnabas-brokers-3": (3, ("broker",)),
    }
    for pod, config in configs.items():
        assert not config.unknown
        assert [voter.id for voter in config.quorum_voters] == [0, 1, 2]
        (advertised,) = config.advertised_listeners or ()
        assert (advertised.host, advertised.port) == (f"{pod}.barnabas-nodes.kafka.svc", 9092)
        for voter in config.quorum_voters:
            (endpoint,) = voter.endpoints
            assert (endpoint.host, endpoint.port) == (f"barnabas-{voter.id}.barnabas-nodes.kafka.svc", 9093)


def test_a_zone_that_kubernetes_tells_is_the_rack(of_page: list[Object]) -> None:
    (nodes, _) = stateful_sets(of_page)
    assert settings(of_page, nodes, "barnabas-0", "eu-1a").str_value("broker.rack") == "eu-1a"
    assert "broker.rack" not in settings(of_page, nodes, "barnabas-0").provided


def test_names_labels_and_ports_fit_together(of_page: list[Object]) -> None:
    services = {each["metadata"]["name"]: each["spec"] for each in of_page if each["kind"] == "Service"}
    assert set(services) == {"barnabas", "barnabas-nodes"}
    assert services["barnabas-nodes"]["clusterIP"] == "None"
    assert services["barnabas-nodes"]["publishNotReadyAddresses"]
    budget, policy = of_kind(of_page, "PodDisruptionBudget")["spec"], of_kind(of_page, "NetworkPolicy")["spec"]
    assert budget["maxUnavailable"] == 1
    (user,) = instructions("USER")
    (volume,) = instructions("VOLUME")
    for each in stateful_sets(of_page):
        spec, pod = each["spec"], each["spec"]["template"]["spec"]
        labels = spec["template"]["metadata"]["labels"].items()
        selectors = (service["selector"] for service in services.values())
        for selector in (spec["selector"]["matchLabels"], budget["selector"]["matchLabels"], *selectors):
            assert selector.items() <= labels
        assert policy["podSelector"]["matchLabels"].items() <= labels
        assert spec["serviceName"] == "barnabas-nodes"
        assert spec["podManagementPolicy"] == "Parallel"
        ports = {port["name"]: port["containerPort"] for port in container(each)["ports"]}
        assert ports == {"clients": 9092, "controller": 9093, "metrics": 9308}
        assert {port["targetPort"] for service in services.values() for port in service["ports"]} <= set(ports)
        probes = [container(each)[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")]
        assert probes == [{"path": path, "port": "metrics"} for path in ("/readyz", "/readyz", "/healthz")]
        assert str(pod["securityContext"]["runAsUser"]) == user
        assert container(each)["securityContext"]["readOnlyRootFilesystem"]
        assert container(each)["volumeMounts"][0]["mountPath"] == volume
        assert container(each)["image"] == "registry.example.org/barnabas:0.1.0"
    # Two sets of pods with one selector would take each other's pods.
    selectors = [each["spec"]["selector"]["matchLabels"].items() for each in stateful_sets(of_page)]
    assert not any(one <= other for one in selectors for other in selectors if one is not other)


@pytest.mark.parametrize("name", OVERLAYS)
def test_a_config_map_has_no_secret(name: str) -> None:
    found = objects(kustomized(FOLDER / "overlays" / name))
    data = of_kind(found, "ConfigMap")["data"]
    assert data
    assert [each for each in data if SECRET_WORDS.search(each.removesuffix("_FILE"))] == []


def test_the_base_alone_is_not_insecure() -> None:
    data = of_kind(objects(kustomized(FOLDER / "base")), "ConfigMap")["data"]
    assert "KAFKA_BARNABAS_INSECURE" not in data


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
        found[name] = value.replace("/var/lib/barnabas", str(folder / pod))
    return found


class Pods:
    """The processes of all pods of these objects, each with what its container would get."""

    def __init__(self, found: list[Object], folder: Path, stack: ExitStack, also: Mapping[str, str]) -> None:
        self.names = [pod for each in stateful_sets(found) for pod in pod_names(each)]
        with ExitStack() as held:
            free = {(pod, port): _free_port(held) for pod in self.names for port in ("9092", "9093", "9308")}
        self._free = free
        (entrypoint,) = [re.findall(r'"(.+?)"', each) for each in instructions("ENTRYPOINT")]
        assert entrypoint == ["barnabas"]
        self.processes = {}
        self.logs = {pod: folder / f"{pod}.log" for pod in self.names}
        for each in stateful_sets(found):
            for pod in pod_names(each):
                variables = image_environment() | environment(found, each, pod) | also
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


@pytest.fixture
def pods(of_page: list[Object], tmp_path: Path) -> Iterator[Pods]:
    with ExitStack() as stack:
        yield Pods(of_page, tmp_path, stack, {})


@pytest.mark.slow
def test_what_the_pods_run_forms_a_cluster(of_page: list[Object], pods: Pods) -> None:
    for pod, process in pods.processes.items():
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == f"barnabas ready on 127.0.0.1:{pods.port(pod, '9092')}\n", pods.logs[pod].read_text()
    probe = container(stateful_sets(of_page)[0])["readinessProbe"]["httpGet"]
    for pod in pods.names:
        _wait_until_ready(f"http://127.0.0.1:{pods.port(pod, '9308')}{probe['path']}")
    with Admin(f"127.0.0.1:{pods.port('barnabas-0', '9092')}") as admin:
        cluster = admin.describe_cluster()
        assert cluster.cluster_id == "4L6g3nShT-eMCtK--X86sw"
        assert {each.id: str(each.port) for each in cluster.brokers} == {
            int(pod.rpartition("-")[2]): pods.port(pod, "9092") for pod in pods.names
        }
        assert {each.id for each in admin.describe_quorum().replicas if each.is_voter} == {0, 1, 2}
    for process in pods.processes.values():
        process.send_signal(signal.SIGTERM)
    assert [process.wait(60) for process in pods.processes.values()] == [0, 0, 0, 0]


def _wait_until_ready(url: str) -> None:
    """Ask as the kubelet does: the Kafka port serves a moment before the broker is unfenced."""
    deadline = time.monotonic() + READY_S
    while _status(url) != HTTPStatus.OK:
        assert time.monotonic() < deadline


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _free_port(held: ExitStack) -> str:
    found = held.enter_context(socket.socket())
    found.bind(("127.0.0.1", 0))
    return str(found.getsockname()[1])
