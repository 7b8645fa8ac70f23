"""The names of metrics that Strimzi's dashboards ask for, without those of the JVM and of Kubernetes.

Source: `strimzi-kafka.json`, `strimzi-kraft.json`, `strimzi-kafka-exporter.json` below `examples/metrics/grafana-dashboards`, and the
first two below `examples/metrics/strimzi-metrics-reporter/grafana-dashboards`, of github.com/strimzi/strimzi-kafka-operator at
8541da1e336b (22 August 2026).
"""

from __future__ import annotations

__all__ = ["STRIMZI_NAMES"]

_PREFIXED = {
    "kafka_server_brokertopicmetrics_": (
        "bytesin_total bytesout_total messagesin_total totalproducerequests_total totalfetchrequests_total"
        " failedproducerequests_total failedfetchrequests_total bytesinpersec_total bytesoutpersec_total messagesinpersec_total"
        " totalproducerequestspersec_total totalfetchrequestspersec_total failedproducerequestspersec_total"
        " failedfetchrequestspersec_total"
    ),
    "kafka_server_replicamanager_": "leadercount partitioncount underreplicatedpartitions",
    "kafka_cluster_partition_": "atminisr underminisr",
    "kafka_controller_controllerstats_": "uncleanleaderelections_total uncleanleaderelectionspersec_total",
    "kafka_controller_kafkacontroller_": "activecontrollercount offlinepartitionscount",
    "kafka_log_log_": "size",
    "kafka_network_socketserver_": "networkprocessoravgidle_percent networkprocessoravgidlepercent",
    "kafka_server_kafkarequesthandlerpool_": "requesthandleravgidle_percent requesthandleravgidlepercent_total",
    "kafka_server_kafkaserver_linux_disk_": "read_bytes write_bytes",
    "kafka_server_socket_server_metrics_": "connection_count",
    "kafka_server_raftmetrics_": (
        "append_records_rate commit_latency_avg current_epoch current_leader current_state current_vote fetch_records_rate"
        " high_watermark log_end_offset"
    ),
    "kafka_server_raft_metrics_": (
        "append_records_rate commit_latency_avg current_epoch current_leader current_state_info current_vote fetch_records_rate"
        " high_watermark log_end_offset"
    ),
    "kafka_server_raftchannelmetrics_": "incoming_byte_total outgoing_byte_total request_total response_total",
    "kafka_server_raft_channel_metrics_": "incoming_byte outgoing_byte request response",
    "kafka_topic_": "partitions",
    "kafka_topic_partition_": (
        "current_offset oldest_offset in_sync_replica leader_is_preferred replicas under_replicated_partition"
    ),
    "kafka_consumergroup_": "current_offset lag",
    "process_": "open_fds",
}
STRIMZI_NAMES = tuple(prefix + name for prefix, names in _PREFIXED.items() for name in names.split())
