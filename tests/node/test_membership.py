"""A node is alone or a member, and one module decides it."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas import node as room
from barnabas.config.config import BrokerConfig
from barnabas.net.renewed_stores import RenewedStores
from barnabas.node.alone import Alone, OwnCoordinators
from barnabas.node.member import Member
from barnabas.node.membership import membership_of
from barnabas.node.remote_coordinators import RemoteCoordinators
from tests.node.runtimes import runtime_of

BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
}


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({}, Alone),
        ({"controller.quorum.bootstrap.servers": "localhost:9093"}, Alone),
        ({**BOTH, "controller.quorum.voters": "1@a:9093", "listeners": "PLAINTEXT://:9092"}, Alone),
        # It names no other node, but others may join it.
        (BOTH, Member),
        ({**BOTH, "controller.quorum.voters": "1@a:9093,2@b:9093"}, Member),
        ({**BOTH, "controller.quorum.voters": "2@b:9093", "process.roles": "broker", "listeners": "PLAINTEXT://:9092"}, Member),
        ({**BOTH, "process.roles": "controller", "listeners": "CONTROLLER://:9093", "controller.quorum.voters": "1@a:9093"}, Member),
    ],
)  # fmt: skip
def test_a_node_without_others_and_without_a_way_to_it_is_alone(properties: dict[str, str], kind: type) -> None:
    loop = asyncio.new_event_loop()
    made = membership_of(BrokerConfig.from_properties(properties), runtime_of(loop), RenewedStores(loop, 1))
    assert type(made) is kind
    loop.close()


def test_both_kinds_do_the_same_things() -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        made = inspect.getmembers(kind, inspect.isfunction)
        return {name: list(inspect.signature(each).parameters) for name, each in made if not name.startswith("_")}

    assert methods(Alone) == methods(Member)
    assert methods(OwnCoordinators).keys() == methods(RemoteCoordinators).keys() - {"leader_of"}


def test_no_other_module_of_the_room_asks() -> None:
    modules = sorted(Path(str(room.__file__)).parent.glob("*.py"))
    asking = [path.stem for path in modules if re.search(r"config\.is_alone", path.read_text())]
    assert asking == ["membership"]


def test_a_node_alone_imports_no_connections_to_others() -> None:
    code = "import sys, barnabas.node.node; print(*(n for n in sys.modules if n.startswith('barnabas.node.')))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    imported = set(done.stdout.split())
    assert {"barnabas.node.broker", "barnabas.node.alone"} <= imported
    of_a_member = {"member", "remote_coordinators", "inter_broker", "replication_settings"}
    assert {f"barnabas.node.{name}" for name in of_a_member} & imported == set()
