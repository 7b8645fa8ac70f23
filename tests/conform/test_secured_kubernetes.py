"""The component `secured` of packaging/kubernetes: its nodes find each other with TLS and logins, and admit who has one."""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from ssl import create_default_context

import pytest

from barnabas.client.admin import Admin
from barnabas.protocol.errors import KafkaError
from barnabas.security.client_security import client_security
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.dev_settings import client_login
from tests.packaging.kubernetes import kustomized, needs_kubectl, objects, of_the_page
from tests.packaging.pods import SECRETS, Pods

pytestmark = [pytest.mark.conform, needs_kubectl]

LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="hunter2" user_admin="hunter2"'
TOKEN = "0123456789abcdef0123456789abcdef"
NOW_MS = 1_790_000_000_000


def test_nodes_and_clients_log_in(tmp_path: Path) -> None:
    authority = DevelopmentAuthority.create(NOW_MS)
    # The certificate of a cluster has the pods' names; these nodes have addresses.
    issued = authority.issue("CN=node", hosts=["127.0.0.1"])
    secrets = {
        "node.pem": issued.key + issued.certificate + issued.authority,
        "ca.pem": authority.certificate,
        "metrics.token": f"{TOKEN}\n",
        "clients.jaas": f'{LOGIN} user_alice="hunter3";\n',
        "controllers.jaas": f"{LOGIN};\n",
    }
    found = objects(kustomized(of_the_page(tmp_path / "page", 1, secrets)))
    with ExitStack() as stack:
        pods = Pods(found, tmp_path, stack)
        pods.wait_until_ready()
        bootstrap = f"127.0.0.1:{pods.port('barnabas-0', '9092')}"
        properties = {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(tmp_path / SECRETS / "ca.pem"),
        }
        with Admin(
            bootstrap, security=client_security(properties | client_login("PLAIN", "admin", "hunter2"))
        ) as admin:
            assert {each.id for each in admin.describe_cluster().brokers} == {0, 1, 2}
        with (
            pytest.raises(KafkaError, match="Authentication failed"),
            Admin(bootstrap, security=client_security(properties | client_login("PLAIN", "admin", "hunter3"))) as admin,
        ):
            admin.describe_cluster()
        metrics = f"https://127.0.0.1:{pods.port('barnabas-0', '9308')}/metrics"
        context = create_default_context(cadata=authority.certificate)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(metrics, context=context)
        asked = urllib.request.Request(metrics, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked, context=context) as answer:
            assert b"kafka_server_" in answer.read()
        assert pods.stop() == [0, 0, 0]
        assert not any("hunter" in log.read_text() for log in pods.logs.values())
