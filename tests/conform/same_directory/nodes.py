"""The two programs on one directory, started with one file: the server.properties that Apache Kafka ships, with ports of its own."""

from __future__ import annotations

from pathlib import Path

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.metadata_batch_loader import MetadataBatchLoader
from barnabas.records.record_batch import iter_batches
from tests.conform.brokers import BarnabasProcess, KafkaProcess

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


class Kafka(KafkaProcess):
    """Apache Kafka with its own file and its defaults: combined mode, one node, PLAINTEXT."""

    format_options = ("--standalone",)

    def properties(self) -> dict[str, str]:
        client, controller = f"PLAINTEXT://127.0.0.1:{self.port}", f"CONTROLLER://127.0.0.1:{self.controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "listeners": f"{client},{controller}",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": f"{client},{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
            "num.network.threads": "3",
            "num.io.threads": "8",
            "socket.send.buffer.bytes": "102400",
            "socket.receive.buffer.bytes": "102400",
            "socket.request.max.bytes": "104857600",
            "log.dirs": str(self.data_dir),
            "num.partitions": "1",
            "num.recovery.threads.per.data.dir": "2",
            "offsets.topic.replication.factor": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "log.retention.hours": "168",
            "log.segment.bytes": "1073741824",
            "log.retention.check.interval.ms": "300000",
        }

    def cluster_id(self) -> str:
        return CLUSTER_ID


class Barnabas(BarnabasProcess):
    """`barnabas start --config` with the file of that directory."""

    def arguments(self) -> list[str]:
        return ["--config", str(self.folder / "server.properties")]


def image_in(data_dir: Path) -> MetadataImage:
    """The metadata that a stopped node has left, from the records of its log."""
    delta, loader = MetadataDelta(MetadataImage()), MetadataBatchLoader()
    for segment in sorted((data_dir / "__cluster_metadata-0").glob("*.log")):
        data = segment.read_bytes()
        batches = (memoryview(data)[at : at + header.size] for at, header in iter_batches(data))
        for loaded in loader.load(batches):
            for record in loaded.records:
                delta.replay(record)
    return delta.apply()
