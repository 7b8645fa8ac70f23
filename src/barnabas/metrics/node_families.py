"""The node itself: controller, quorum, requests, connections, quotas.

- One thread does everything, so that handlers and network have the same idle share: the share of the time since the last scrape in
  which the event loop's thread used no processor. The first scrape measures since the start of the metrics.
- The raft channel carries what this node asks the others of the quorum: a sole voter has none. Rates are those between two scrapes;
  what a role that has just changed had appended counts for the new role.
- Some numbers have two names: that of the JMX exporter with Strimzi's rules, and that of Strimzi's metrics reporter.
- Throttle times and rates by user and client id exist for clients with a quota, as in Kafka.

Sources: Strimzi's example rules; Kafka's `KafkaRaftMetrics`, `QuorumControllerMetrics`, `RequestMetrics`, `ClientQuotaManager`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from barnabas.metadata.nothing import NOTHING
from barnabas.metadata.partition_index import WITHOUT_LEADER
from barnabas.metrics.exposition import Family, family, labels, summary
from barnabas.metrics.request_times import ApiTimes
from barnabas.metrics.source import QuorumState, Source
from barnabas.protocol.errors import ErrorCode
from barnabas.quota.quota_manager import QuotaManager

__all__ = ["NodeFamilies"]


class NodeFamilies:
    """The families of the node; some samples depend on the previous scrape.

    Args:
        monotonic_ns: the clock for rates.
        thread_ns: the processor time of the calling thread.
    """

    def __init__(
        self, source: Source, monotonic_ns: Callable[[], int], thread_ns: Callable[[], int] = time.thread_time_ns
    ) -> None:
        self._source = source
        self._monotonic_ns = monotonic_ns
        self._thread_ns = thread_ns
        self._at_ns = monotonic_ns()
        self._used_ns = thread_ns()
        self._idle_ns = 0
        self._before = source.quorum()

    def families(self) -> Iterator[Family]:
        """Yield every family of the node; call it in the event loop's thread."""
        now_ns, used_ns = self._monotonic_ns(), self._thread_ns()
        passed_ns = max(now_ns - self._at_ns, 1)
        idle_ns = min(max(passed_ns - (used_ns - self._used_ns), 0), passed_ns)
        self._idle_ns += idle_ns
        quorum = self._source.quorum()
        yield from self._controller()
        yield from _raft(quorum, self._before, passed_ns / 1e9)
        self._at_ns, self._used_ns, self._before = now_ns, used_ns, quorum
        yield from self._idle(idle_ns / passed_ns)
        yield from self._connections()
        yield from self._certificates()
        yield from self._requests()
        yield from self._quotas()

    def _idle(self, idle: float) -> Iterator[Family]:
        yield family(
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
            "gauge",
            "Share of the time in which the event loop was idle, 0 to 1.",
            [("", idle)],
        )
        yield family(
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
            "counter",
            "Nanoseconds in which the event loop was idle, up to the last scrape.",
            [("", self._idle_ns)],
        )
        for spelling in ("idle_percent", "idlepercent"):
            yield family(
                f"kafka_network_socketserver_networkprocessoravg{spelling}",
                "gauge",
                "Share of the time in which the event loop was idle: one loop handles requests and the network.",
                [("", idle)],
            )

    def _certificates(self) -> Iterator[Family]:
        yield family(
            "barnabas_certificate_not_after_timestamp_seconds",
            "gauge",
            "The last second of a certificate of this node, in seconds since the epoch.",
            ((labels({"listener": name, "use": use}), end) for name, use, end in self._source.certificates()),
        )

    def _controller(self) -> Iterator[Family]:
        services, quorum = self._source.services, self._source.quorum()
        is_active = int(quorum.leader == services.node_id)
        yield family(
            "kafka_controller_kafkacontroller_activecontrollercount",
            "gauge",
            "1 on the active controller.",
            [("", is_active)],
        )
        leaderless = services.image().topics.partition_index.get(WITHOUT_LEADER, NOTHING)
        offline = sum(map(len, leaderless.values()))
        yield family(
            "kafka_controller_kafkacontroller_offlinepartitionscount",
            "gauge",
            "Partitions without a leader.",
            [("", offline)],
        )
        brokers = services.image().cluster.brokers.values()
        fenced = sum(broker.fenced for broker in brokers)
        for name, text, count in (
            ("active", "Registered brokers that serve.", len(brokers) - fenced),
            ("fenced", "Registered brokers that the controller has fenced: they are down, or not caught up.", fenced),
        ):
            yield family(f"kafka_controller_kafkacontroller_{name}brokercount", "gauge", text, [("", count)])
        for spelling in ("elections", "electionspersec"):
            yield family(
                f"kafka_controller_controllerstats_uncleanleader{spelling}_total",
                "counter",
                "Leaders elected from outside the in-sync replicas since the start; they may lack records.",
                [("", quorum.unclean_elections)],
            )

    def _connections(self) -> Iterator[Family]:
        counts = self._source.listener_counts()
        yield family(
            "kafka_server_socket_server_metrics_connection_count",
            "gauge",
            "Open connections.",
            ((labels({"listener": name}), count) for name, count in counts),
        )

    def _requests(self) -> Iterator[Family]:
        times = self._source.request_times
        times.rotate_if_due()
        by_api = [(labels({"request": api.name}), api) for _, api in sorted(times.by_key.items())]
        yield family(
            "kafka_network_requestmetrics_requests_total",
            "counter",
            "Requests answered, by API and version.",
            (
                (f'{tags},version="{version}"', count)
                for tags, api in by_api
                for version, count in sorted(api.by_version.items())
            ),
        )
        yield family(
            "kafka_network_requestmetrics_errors_total",
            "counter",
            "Error codes in responses, NONE included.",
            (
                (f'{tags},error="{_error_name(code)}"', count)
                for tags, api in by_api
                for code, count in sorted(api.errors.items())
            ),
        )
        yield summary(
            "kafka_network_requestmetrics_totaltimems",
            "Milliseconds from a request's arrival to its response; quantiles of the last one to two minutes.",
            ((tags, api.quantiles(), api.total_ns / 1e6, api.count) for tags, api in by_api),
        )
        sums: tuple[tuple[str, str, Callable[[ApiTimes], float]], ...] = (
            ("requestbytes_total", "Bytes of requests.", lambda api: api.request_bytes),
            ("responsebytes_total", "Bytes of responses, records included.", lambda api: api.response_bytes),
            ("throttletimems_total", "Milliseconds for which clients were throttled.", lambda api: api.throttled_ms),
        )
        for name, text, value in sums:
            samples = ((tags, value(api)) for tags, api in by_api)
            yield family(f"kafka_network_requestmetrics_{name}", "counter", text, samples)

    def _quotas(self) -> Iterator[Family]:
        services = self._source.services
        now_ms = services.now_ms()
        quotas = services.quotas
        if not quotas.is_enabled:
            return
        named: tuple[tuple[str, str, QuotaManager], ...] = (
            ("produce", "byte_rate", quotas.produce),
            ("fetch", "byte_rate", quotas.fetch),
            ("request", "request_time", quotas.request),
        )
        for kind, measure, manager in named:
            sensors = [
                (labels({"user": user, "client_id": client_id}), sensor)
                for (user, client_id), sensor in sorted(manager.sensors.items())
            ]
            yield family(
                f"kafka_server_{kind}_{measure}",
                "gauge",
                "Usage a second of clients with a quota.",
                ((tags, sensor.meter.measure(now_ms)) for tags, sensor in sensors),
            )
            yield family(
                f"kafka_server_{kind}_throttle_time_total",
                "counter",
                "Milliseconds for which clients with a quota were throttled.",
                ((tags, sensor.throttled_ms) for tags, sensor in sensors),
            )


def _raft(quorum: QuorumState, before: QuorumState, seconds: float) -> Iterator[Family]:
    more_per_second = max(quorum.log_end_offset - before.log_end_offset, 0) / seconds
    is_leader = quorum.state.lower() == "leader"
    commit_ms = (quorum.commit_ms - before.commit_ms) / max(quorum.commits - before.commits, 1)
    state = labels({"current_state": quorum.state.lower()})
    samples: tuple[tuple[str, str, str, float], ...] = (
        ("current_leader", "Node id of the quorum's leader.", "", quorum.leader),
        ("current_epoch", "Epoch of the quorum.", "", quorum.epoch),
        ("current_vote", "Node id that this node voted for in this epoch, -1 without a vote.", "", quorum.vote),
        ("current_state", "1 for the role of this node.", state, 1),
        ("high_watermark", "High watermark of the metadata log.", "", quorum.high_watermark),
        ("log_end_offset", "Log end offset of the metadata log.", "", quorum.log_end_offset),
        (
            "append_records_rate",
            "Metadata records appended as the leader, a second since the last scrape.",
            "",
            more_per_second if is_leader else 0.0,
        ),
        (
            "fetch_records_rate",
            "Metadata records fetched from the leader, a second since the last scrape.",
            "",
            0.0 if is_leader else more_per_second,
        ),
        ("commit_latency_avg", "Milliseconds from an append to its commit since the last scrape.", "", commit_ms),
    )
    for name, text, tags, value in samples:
        for prefix in ("kafka_server_raftmetrics_", "kafka_server_raft_metrics_"):
            yield family(prefix + name, "gauge", text, [(tags, value)])
    yield family("kafka_server_raft_metrics_current_state_info", "gauge", "1 for the role of this node.", [(state, 1)])
    for name, text, count in (
        ("incoming_byte", "Bytes of the answers of other nodes of the quorum.", quorum.bytes_in),
        ("outgoing_byte", "Bytes of requests to other nodes of the quorum.", quorum.bytes_out),
        ("request", "Requests to other nodes of the quorum.", quorum.requests),
        ("response", "Answers of other nodes of the quorum.", quorum.responses),
    ):
        for whole in (f"channelmetrics_{name}_total", f"_channel_metrics_{name}_total", f"_channel_metrics_{name}"):
            # The name of a counter ends in _total; readers of the text add it to one that does not.
            kind = "counter" if whole.endswith("_total") else "untyped"
            yield family(f"kafka_server_raft{whole}", kind, text, [("", count)])


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
