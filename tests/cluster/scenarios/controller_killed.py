"""The active controller dies while topics are created: every topic whose creation was acknowledged exists, on every node."""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster import views
from tests.cluster.cluster import Cluster
from tests.cluster.load import QUICK
from tests.cluster.waiting import wait_for
from tests.cluster.worker import Worker
from tests.conform.tool_process import ToolProcess

EACH = 8
ANSWER_SECONDS = 20.0


class Creator(Worker):
    """Creates topics, one after the other, in a thread.

    Attributes:
        created: those whose creation was acknowledged.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, **QUICK})
        self.created: list[str] = []

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            name = f"created-{number}"
            asked = self._admin.create_topics([NewTopic(name, 1, 3)], request_timeout=5, operation_timeout=5)
            try:
                asked[name].result(ANSWER_SECONDS)
            except KafkaException:
                # Perhaps the topic was created, but nothing is promised about it.
                continue
            self.created.append(name)

    def await_more(self) -> None:
        """Wait until several more are acknowledged."""
        goal = len(self.created) + EACH
        wait_for(f"{EACH} more topics are created", lambda: len(self.created) >= goal)


def play(cluster: Cluster, _: ToolProcess) -> None:
    with Creator(cluster.bootstrap_servers) as creator:
        creator.await_more()
        controller = cluster.active_controller()
        controller.kill()
        if len(cluster.controllers) > 1:
            assert cluster.active_controller() is not controller
            creator.await_more()
        cluster.start_again(controller)
        creator.await_more()
    for node in cluster.brokers:
        wait_for(
            f"node {node.node_id} knows every topic whose creation was acknowledged",
            lambda address=node.address: views.all_topics(address) >= set(creator.created),  # type: ignore[misc]
            30,
        )
    cluster.await_in_sync(creator.created)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUICK})
    for future in admin.delete_topics(creator.created, operation_timeout=ANSWER_SECONDS).values():
        future.result(ANSWER_SECONDS * 2)
