"""packaging/kubernetes: kustomize builds it, its parts fit together, and what the pods would run forms a cluster without Kubernetes."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas.client.admin import Admin
from barnabas.config.config import BrokerConfig
from barnabas.config.sources import ConfigSources
from tests.packaging.kubernetes import (
    FOLDER,
    Object,
    container,
    environment,
    init_container,
    kustomized,
    needs_kubectl,
    objects,
    of_kind,
    of_the_page,
    pod_names,
    stateful_sets,
)
from tests.packaging.pods import COMMAND, Pods
from tests.packaging.test_containers import image_environment, instructions
from tests.process.process import ENVIRONMENT

pytestmark = needs_kubectl

SECRETS = ("clients.jaas", "controllers.jaas")


@pytest.fixture(scope="module")
def of_page(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """What the page's first kustomization makes: three nodes, open to their namespace, and a broker more."""
    return objects(kustomized(of_the_page(tmp_path_factory.mktemp("page"), 0)))


def settings(found: list[Object], workload: Object, pod: str, zone: str = "") -> BrokerConfig:
    variables = image_environment() | environment(found, workload, pod, zone)
    return BrokerConfig.from_properties(ConfigSources(None, variables).properties)


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
        assert container(each)["image"] == "registry.example.org/barnabas:0.1.0" == init_container(each)["image"]
        assert init_container(each)["securityContext"] == container(each)["securityContext"]
        assert init_container(each)["volumeMounts"] == [{"name": "data", "mountPath": volume}]
    # Two sets of pods with one selector would take each other's pods.
    selectors = [each["spec"]["selector"]["matchLabels"].items() for each in stateful_sets(of_page)]
    assert not any(one <= other for one in selectors for other in selectors if one is not other)


@pytest.mark.parametrize("number", [0, 1])
def test_a_config_map_has_no_secret(number: int, tmp_path: Path) -> None:
    secret = "hunter2"
    found = objects(kustomized(of_the_page(tmp_path / "page", number, dict.fromkeys(SECRETS, secret))))
    data = of_kind(found, "ConfigMap")["data"]
    assert "KAFKA_LISTENERS" in data
    assert [name for name in data if re.search("PASSWORD|JAAS|SECRET", name)] == []
    without = [each for each in found if each["kind"] != "Secret"]
    assert secret not in repr(without)
    assert base64.b64encode(secret.encode()).decode() not in repr(without)
    if number:
        (workload,) = stateful_sets(found)
        config = settings([*found], workload, "barnabas-0")
        assert not config.unknown
        assert secret in config.properties["listener.name.clients.plain.sasl.jaas.config"]
        mounted = workload["spec"]["template"]["spec"]["volumes"][0]["secret"]["secretName"]
        assert mounted == of_kind(found, "Secret")["metadata"]["name"] == "barnabas"


def test_the_base_alone_is_not_insecure() -> None:
    data = of_kind(objects(kustomized(FOLDER / "base")), "ConfigMap")["data"]
    assert "KAFKA_BARNABAS_INSECURE" not in data


@pytest.mark.slow
def test_what_the_pods_run_forms_a_cluster(of_page: list[Object], tmp_path: Path) -> None:
    with ExitStack() as stack:
        pods = Pods(of_page, tmp_path, stack)
        pods.wait_until_ready()
        with Admin(f"127.0.0.1:{pods.port('barnabas-0', '9092')}") as admin:
            cluster = admin.describe_cluster()
            assert cluster.cluster_id == "4L6g3nShT-eMCtK--X86sw"
            assert {each.id: str(each.port) for each in cluster.brokers} == {
                int(pod.rpartition("-")[2]): pods.port(pod, "9092") for pod in pods.names
            }
            assert {each.id for each in admin.describe_quorum().replicas if each.is_voter} == {0, 1, 2}
        for printed in pods.self_tests.values():
            assert "SYNC-P99-MS" in printed.splitlines()[0]
            assert "starts all the same" not in printed
        assert pods.stop() == [0, 0, 0, 0]


def test_a_volume_that_cannot_be_written_to_is_named_before_the_broker_starts(
    of_page: list[Object], tmp_path: Path
) -> None:
    """The init container ends well: the broker says itself that it cannot start, and a nearly full disk must not keep it from it."""
    (nodes, _) = stateful_sets(of_page)
    absent = tmp_path / "absent"
    words = [*init_container(nodes)["command"], *init_container(nodes)["args"]]
    done = subprocess.run(
        [word.replace("/var/lib/barnabas", str(absent)) for word in words],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT | {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"},
    )
    assert done.stdout == "the broker starts all the same\n"
    assert " ".join(done.stderr.split()).startswith(f"error: {absent}: no such file or directory")
