"""What a reset of a broker leaves, and what it deletes."""

from __future__ import annotations

from pathlib import Path

from barnabas.protocol.messages import FindCoordinatorRequest, IncrementalAlterConfigsRequest
from tests.api.served_node import Serving
from tests.node.asking import commit, committed, fetched, topics


def test_a_reset_leaves_the_configuration_of_a_fresh_cluster(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    try:
        fresh = dict(node.server.services.image().configs.by_resource)
        node.create_topic("t", retention_ms="1")
        commit(node, "g", 7)
        config = IncrementalAlterConfigsRequest.AlterableConfig(
            name="log.retention.ms", config_operation=0, value="1000"
        )
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=4, resource_name="", configs=[config]
        )
        assert node.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code == 0
        before = topics(node)["t"].topic_id
        node.loop.run_until_complete(node.server.reset())
        assert topics(node) == {}
        assert dict(node.server.services.image().configs.by_resource) == fresh
        node.create_topic("t")
        assert topics(node)["t"].topic_id != before
        assert fetched(node, "t") == b""
        assert committed_or_none(node, "g") in (-1, None)
    finally:
        node.close()


def committed_or_none(node: Serving, group: str) -> int | None:
    node.ask(FindCoordinatorRequest(coordinator_keys=[group]))
    return committed(node, group)
