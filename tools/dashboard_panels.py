"""The panels of the dashboards for Grafana, as a table: `tools/write_dashboards.py` makes JSON of it.

In an expression `@` stands for the matchers of the dashboard's variables, and `$__rate_interval` for Grafana's choice of a range.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DASHBOARDS", "Dashboard", "Panel", "Row", "Variable"]

Steps = tuple[tuple[float, str], ...]
"""From which value on a panel has which colour; below the first one it is green."""

ONE_IS_BAD: Steps = ((1, "red"),)
ONE_IS_A_WARNING: Steps = ((1, "orange"),)


class Panel(NamedTuple):
    """One panel.

    Attributes:
        queries: expression and legend of each.
        unit: in Grafana's words.
        kind: stat or timeseries.
        base: the colour below the first step.
        text: what the title does not say.
        is_name: a stat that shows the legend instead of the value.
    """

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    steps: Steps = ()
    base: str = "green"
    text: str = ""
    is_name: bool = False
    names: tuple[tuple[int, str], ...] = ()


class Row(NamedTuple):
    title: str
    panels: tuple[Panel, ...]


class Variable(NamedTuple):
    """A choice at the top of a dashboard: the values of a label of a metric, as the matchers that are there select it."""

    name: str
    title: str
    metric: str
    label: str


class Dashboard(NamedTuple):
    """Attributes: `matchers` take the place of `@`."""

    name: str
    title: str
    text: str
    variables: tuple[Variable, ...]
    matchers: str
    rows: tuple[Row, ...]


def stat(
    title: str, expression: str, steps: Steps = (), *, unit: str = "short", base: str = "green", text: str = ""
) -> Panel:
    return Panel(title, ((expression, ""),), unit, "stat", steps, base, text)


def chart(title: str, *queries: tuple[str, str], unit: str = "short", steps: Steps = (), text: str = "") -> Panel:
    return Panel(title, queries, unit, "timeseries", steps, "green", text)


def by_node(expression: str) -> tuple[str, str]:
    return f"sum by (instance) ({expression})", "{{instance}}"


def top(expression: str, *labels: str) -> tuple[str, str]:
    return f"topk(10, {expression})", " ".join(f"{{{{{label}}}}}" for label in labels)


JOB = Variable("job", "Cluster", "kafka_brokers", "job")
NODE = Variable("instance", "Node", "kafka_brokers{@}", "instance")
GROUP = Variable("group", "Group", "kafka_consumergroup_members{@}", "consumergroup")
QUERY = Variable("query", "Query", "barnabas_spark_query_active", "query")
TRAFFIC = "kafka_server_brokertopicmetrics_"
REPLICAS = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"
RAFT = "kafka_server_raft_metrics_"
CHANNEL = "kafka_server_raft_channel_metrics_"
REQUESTS = "kafka_network_requestmetrics_"
LITTLE_SPACE: Steps = ((0.05, "orange"), (0.15, "green"))

CLUSTER = Dashboard(
    "cluster",
    "barnabas: cluster",
    "Whether the cluster serves, what goes through it, its replicas and its quorum.",
    (JOB,),
    'job=~"$job"',
    (
        Row(
            "Health",
            (
                stat("Nodes that answer", "sum(up{@})", ((1, "green"),), base="red"),
                stat(
                    "Active controllers",
                    f"sum({CONTROLLER}activecontrollercount{{@}})",
                    ((1, "green"), (2, "red")),
                    base="red",
                    text="One. None: topics and leaders cannot change.",
                ),
                stat("Offline partitions", f"max({CONTROLLER}offlinepartitionscount{{@}})", ONE_IS_BAD),
                stat("Below min.insync.replicas", f"sum({REPLICAS}underminisrpartitioncount{{@}})", ONE_IS_BAD),
                stat(
                    "One failure from it",
                    "count(kafka_cluster_partition_atminisr{@} == 1 and on (job, instance, topic, partition)"
                    " kafka_topic_partition_under_replicated_partition{@} == 1) or vector(0)",
                    ONE_IS_A_WARNING,
                    text="Partitions that lack a replica and have just min.insync.replicas left.",
                ),
                stat("Under-replicated", f"sum({REPLICAS}underreplicatedpartitions{{@}})", ONE_IS_A_WARNING),
                stat("Fenced brokers", f"max({CONTROLLER}fencedbrokercount{{@}})", ONE_IS_A_WARNING),
                stat("Disks offline", "sum(kafka_log_logmanager_offlinelogdirectorycount{@})", ONE_IS_BAD),
                stat(
                    "Unclean elections, 24 h",
                    "sum(increase(kafka_controller_controllerstats_uncleanleaderelections_total{@}[24h]))",
                    ((0.5, "red"),),
                    text="Leaders that may lack acknowledged records.",
                ),
                stat(
                    "Least free space",
                    "min(barnabas_log_directory_free_bytes{@} / barnabas_log_directory_total_bytes{@})",
                    LITTLE_SPACE,
                    unit="percentunit",
                    base="red",
                ),
                stat("Topics", "count(max by (job, topic) (kafka_topic_partitions{@}))", base="blue"),
                stat("Partitions that move", f"sum({REPLICAS}reassigningpartitions{{@}})", base="blue"),
            ),
        ),
        Row(
            "Traffic",
            (
                chart(
                    "Records in",
                    top(f'sum by (topic) (rate({TRAFFIC}messagesin_total{{@, topic!=""}}[$__rate_interval]))', "topic"),
                    unit="cps",
                ),
                chart(
                    "Bytes in",
                    by_node(f'rate({TRAFFIC}bytesin_total{{@, topic=""}}[$__rate_interval])'),
                    unit="Bps",
                ),
                chart(
                    "Bytes out",
                    by_node(f'rate({TRAFFIC}bytesout_total{{@, topic=""}}[$__rate_interval])'),
                    unit="Bps",
                ),
                chart(
                    "Requests",
                    top(f"sum by (request) (rate({REQUESTS}requests_total{{@}}[$__rate_interval]))", "request"),
                    unit="reqps",
                ),
                chart(
                    "Time of requests, 99 %",
                    (
                        f'max by (request) ({REQUESTS}totaltimems{{@, quantile="0.99",'
                        ' request=~"Produce|Fetch|FetchConsumer|Metadata|OffsetCommit"})',
                        "{{request}}",
                    ),
                    unit="ms",
                ),
                chart(
                    "Failed appends and reads",
                    (f'sum(rate({TRAFFIC}failedproducerequests_total{{@, topic=""}}[$__rate_interval]))', "appends"),
                    (f'sum(rate({TRAFFIC}failedfetchrequests_total{{@, topic=""}}[$__rate_interval]))', "reads"),
                    unit="cps",
                ),
            ),
        ),
        Row(
            "Replicas",
            (
                chart("Leaders", by_node(f"{REPLICAS}leadercount{{@}}")),
                chart(
                    "Leaders that are not the first replica",
                    (
                        "sum by (job) (max by (job, topic, partition) (kafka_topic_partition_leader_is_preferred{@}) == bool 0)",
                        "{{job}}",
                    ),
                ),
                chart(
                    "ISR shrinks and expands",
                    (
                        f"sum by (instance) (increase({REPLICAS}isrshrinks_total{{@}}[$__rate_interval]))",
                        "{{instance}} shrinks",
                    ),
                    (
                        f"sum by (instance) (increase({REPLICAS}isrexpands_total{{@}}[$__rate_interval]))",
                        "{{instance}} expands",
                    ),
                ),
                chart("Bytes of the logs", by_node("kafka_log_log_size{@}"), unit="bytes"),
                chart(
                    "Largest topics, one copy",
                    top("sum by (topic) (max by (job, topic, partition) (kafka_log_log_size{@}))", "topic"),
                    unit="bytes",
                ),
                chart(
                    "Throttled replication",
                    ("sum by (instance) (kafka_server_leaderreplication_byte_rate{@})", "{{instance}} sends"),
                    ("sum by (instance) (kafka_server_followerreplication_byte_rate{@})", "{{instance}} fetches"),
                    unit="Bps",
                ),
            ),
        ),
        Row(
            "Quorum",
            (
                Panel(
                    "Roles",
                    ((f"{RAFT}current_state_info{{@}}", "{{instance}} {{current_state}}"),),
                    kind="stat",
                    base="blue",
                    is_name=True,
                ),
                chart(
                    "Epoch",
                    (f"max by (instance) ({RAFT}current_epoch{{@}})", "{{instance}}"),
                    text="Each step is an election.",
                ),
                chart(
                    "Metadata that a node lacks",
                    (
                        f"max by (job) ({RAFT}log_end_offset{{@}}) - on (job) group_right () {RAFT}high_watermark{{@}}",
                        "{{instance}}",
                    ),
                    text="Records of the metadata log.",
                ),
                chart(
                    "Time to a commit",
                    (f"max by (instance) ({RAFT}commit_latency_avg{{@}})", "{{instance}}"),
                    unit="ms",
                ),
                chart(
                    "Metadata records",
                    (f"sum by (instance) ({RAFT}append_records_rate{{@}})", "{{instance}} appends"),
                    (f"sum by (instance) ({RAFT}fetch_records_rate{{@}})", "{{instance}} fetches"),
                    unit="cps",
                ),
                chart(
                    "Traffic of the quorum",
                    (
                        f"sum by (instance) (rate({CHANNEL}outgoing_byte_total{{@}}[$__rate_interval]))",
                        "{{instance}} asks",
                    ),
                    (
                        f"sum by (instance) (rate({CHANNEL}incoming_byte_total{{@}}[$__rate_interval]))",
                        "{{instance}} receives",
                    ),
                    unit="Bps",
                ),
            ),
        ),
    ),
)

BROKER = Dashboard(
    "broker",
    "barnabas: broker",
    "One node, or several beside each other: requests, event loop, process, disk.",
    (JOB, NODE),
    'job=~"$job", instance=~"$instance"',
    (
        Row(
            "Now",
            (
                stat("Runs since", "min(time() - process_start_time_seconds{@})", unit="s", base="blue"),
                stat("Leaders", f"sum({REPLICAS}leadercount{{@}})", base="blue"),
                stat("Replicas", f"sum({REPLICAS}partitioncount{{@}})", base="blue"),
                stat(
                    "Idle, least",
                    "min(kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{@})",
                    ((0.1, "orange"), (0.3, "green")),
                    unit="percentunit",
                    base="red",
                    text="The event loop does everything; at 0 every request waits.",
                ),
                stat(
                    "Least free space",
                    "min(barnabas_log_directory_free_bytes{@} / barnabas_log_directory_total_bytes{@})",
                    LITTLE_SPACE,
                    unit="percentunit",
                    base="red",
                ),
                stat(
                    "Next certificate ends in",
                    "min(barnabas_certificate_not_after_timestamp_seconds{@} - time())",
                    ((2 * 86400, "orange"), (14 * 86400, "green")),
                    unit="s",
                    base="red",
                    text="Nothing on a node whose listeners have no TLS.",
                ),
            ),
        ),
        Row(
            "Requests",
            (
                chart(
                    "Requests",
                    top(f"sum by (request) (rate({REQUESTS}requests_total{{@}}[$__rate_interval]))", "request"),
                    unit="reqps",
                ),
                chart(
                    "Time, 99 %",
                    top(f'max by (request) ({REQUESTS}totaltimems{{@, quantile="0.99"}})', "request"),
                    unit="ms",
                ),
                chart(
                    "Time, mean",
                    top(
                        f"sum by (request) (rate({REQUESTS}totaltimems_sum{{@}}[$__rate_interval]))"
                        f" / (sum by (request) (rate({REQUESTS}totaltimems_count{{@}}[$__rate_interval])) > 0)",
                        "request",
                    ),
                    unit="ms",
                ),
                chart(
                    "Errors in responses",
                    top(
                        f'sum by (request, error) (rate({REQUESTS}errors_total{{@, error!="NONE"}}[$__rate_interval]))',
                        "request",
                        "error",
                    ),
                    unit="cps",
                    text="Some are everyday: a client that asks the wrong broker asks the right one next.",
                ),
                chart(
                    "Bytes of requests and responses",
                    (
                        f"sum by (instance) (rate({REQUESTS}requestbytes_total{{@}}[$__rate_interval]))",
                        "{{instance}} in",
                    ),
                    (
                        f"sum by (instance) (rate({REQUESTS}responsebytes_total{{@}}[$__rate_interval]))",
                        "{{instance}} out",
                    ),
                    unit="Bps",
                ),
                chart(
                    "Throttled by quotas",
                    top(f"sum by (request) (rate({REQUESTS}throttletimems_total{{@}}[$__rate_interval]))", "request"),
                    unit="ms",
                    text="Milliseconds of waiting in each second.",
                ),
            ),
        ),
        Row(
            "Process",
            (
                chart(
                    "Event loop late, 99 %",
                    (
                        "histogram_quantile(0.99, sum by (instance, le) (rate(barnabas_loop_lag_seconds_bucket{@}[$__rate_interval])))",
                        "{{instance}}",
                    ),
                    unit="s",
                    steps=((0.5, "red"),),
                ),
                chart(
                    "Processor", ("rate(process_cpu_seconds_total{@}[$__rate_interval])", "{{instance}}"), text="Cores."
                ),
                chart("Memory", ("process_resident_memory_bytes{@}", "{{instance}}"), unit="bytes"),
                chart(
                    "File descriptors in use",
                    ("process_open_fds{@} / process_max_fds{@}", "{{instance}}"),
                    unit="percentunit",
                    steps=((0.8, "red"),),
                ),
                chart(
                    "Connections",
                    (
                        "sum by (instance, listener) (kafka_server_socket_server_metrics_connection_count{@})",
                        "{{instance}} {{listener}}",
                    ),
                ),
                chart(
                    "Garbage collections",
                    (
                        "sum by (instance, generation) (rate(python_gc_collections_total{@}[$__rate_interval]))",
                        "{{instance}} generation {{generation}}",
                    ),
                    unit="cps",
                ),
            ),
        ),
        Row(
            "Disk",
            (
                chart(
                    "Free bytes", ("barnabas_log_directory_free_bytes{@}", "{{instance}} {{directory}}"), unit="bytes"
                ),
                chart(
                    "Bytes to and from disks",
                    (
                        "rate(kafka_server_kafkaserver_linux_disk_write_bytes{@}[$__rate_interval])",
                        "{{instance}} writes",
                    ),
                    ("rate(kafka_server_kafkaserver_linux_disk_read_bytes{@}[$__rate_interval])", "{{instance}} reads"),
                    unit="Bps",
                ),
                chart(
                    "Largest logs",
                    top("max by (topic, partition) (kafka_log_log_size{@})", "topic", "partition"),
                    unit="bytes",
                ),
                chart(
                    "Dirtiest log",
                    ("max by (instance) (kafka_log_logcleanermanager_max_dirty_percent{@})", "{{instance}}"),
                    unit="percent",
                ),
                chart(
                    "Compaction",
                    (
                        "sum by (instance) (rate(kafka_log_logcleaner_bytes_read_total{@}[$__rate_interval]))",
                        "{{instance}} reads",
                    ),
                    (
                        "sum by (instance) (rate(kafka_log_logcleaner_bytes_written_total{@}[$__rate_interval]))",
                        "{{instance}} writes",
                    ),
                    unit="Bps",
                ),
                chart(
                    "Logs that cannot be compacted",
                    by_node("kafka_log_logcleanermanager_uncleanable_partitions_count{@}"),
                    steps=ONE_IS_BAD,
                ),
            ),
        ),
    ),
)

VERDICTS = ((0, "OK"), (1, "WARN"), (2, "STALL"), (3, "STOP"), (4, "REWIND"))
MINE = 'consumergroup=~"$group"'

GROUPS = Dashboard(
    "groups",
    "barnabas: groups and transactions",
    "Consumer groups, share groups, and the transactions that hold readers back. Lag needs the recording rule of alarms.yml.",
    (JOB, GROUP),
    'job=~"$job"',
    (
        Row(
            "Now",
            (
                stat(
                    "Groups that do not keep up",
                    "count(max by (job, consumergroup) (barnabas_consumergroup_verdict{@}) > 0) or vector(0)",
                    ONE_IS_A_WARNING,
                ),
                stat(
                    "Groups without members",
                    "count(max by (job, consumergroup) (kafka_consumergroup_members{@}) == 0) or vector(0)",
                    base="blue",
                ),
                stat("Largest lag", "max(sum by (job, consumergroup) (barnabas:consumergroup_lag{@}))", base="blue"),
                stat(
                    "Oldest unread record",
                    "max(kafka_consumergroup_group_max_lag_seconds{@})",
                    ((60, "orange"), (300, "red")),
                    unit="s",
                ),
                stat(
                    "Oldest open transaction",
                    "max(barnabas_transaction_oldest_ongoing_seconds{@})",
                    ((60, "orange"), (300, "red")),
                    unit="s",
                ),
                stat(
                    "Transactions that should have ended",
                    f"sum({REPLICAS}partitionswithlatetransactionscount{{@}})",
                    ONE_IS_BAD,
                    text="Partitions that such a transaction holds back: barnabas txn doctor.",
                ),
            ),
        ),
        Row(
            "Consumer groups",
            (
                chart("Lag", top(f"sum by (consumergroup) (barnabas:consumergroup_lag{{@, {MINE}}})", "consumergroup")),
                chart(
                    "Age of the oldest unread record",
                    top('max by (group) (kafka_consumergroup_group_max_lag_seconds{@, group=~"$group"})', "group"),
                    unit="s",
                    steps=((300, "red"),),
                ),
                Panel(
                    "Verdict",
                    ((f"max by (consumergroup) (barnabas_consumergroup_verdict{{@, {MINE}}})", "{{consumergroup}}"),),
                    text="By Burrow's rules, half a minute after the first scrape.",
                    names=VERDICTS,
                ),
                chart(
                    "Records read",
                    top(
                        f"sum by (consumergroup) (clamp_min(deriv(kafka_consumergroup_current_offset{{@, {MINE}}}[$__rate_interval]), 0))",
                        "consumergroup",
                    ),
                    unit="cps",
                    text="By committed offsets.",
                ),
                chart(
                    "Members",
                    top(f"max by (consumergroup) (kafka_consumergroup_members{{@, {MINE}}})", "consumergroup"),
                ),
                chart(
                    "Partitions with the largest lag",
                    top(
                        f"max by (consumergroup, topic, partition) (barnabas:consumergroup_lag{{@, {MINE}}})",
                        "consumergroup",
                        "topic",
                        "partition",
                    ),
                ),
                chart(
                    "Groups by state",
                    ("sum by (protocol, state) (barnabas_group_state_count{@}) > 0", "{{protocol}} {{state}}"),
                ),
                chart(
                    "Share groups: records given out",
                    by_node("rate(barnabas_sharegroup_records_acquired_total{@}[$__rate_interval])"),
                    unit="cps",
                    text="Nothing before a member of a share group has fetched.",
                ),
                chart(
                    "Share groups: acknowledgements",
                    (
                        "sum by (ackType) (rate(kafka_server_sharegroupmetrics_recordacknowledgements_total{@}[$__rate_interval]))",
                        "{{ackType}}",
                    ),
                    unit="cps",
                    text="Nothing before a member of a share group has fetched.",
                ),
            ),
        ),
        Row(
            "Transactions",
            (
                chart("By state", ("sum by (state) (barnabas_transaction_state_count{@})", "{{state}}")),
                chart(
                    "Open for ten seconds and more",
                    ("max by (owner) (barnabas_transaction_ongoing_seconds{@})", "{{owner}}"),
                    unit="s",
                    steps=((300, "red"),),
                    text="The owner is a transactional id, or PREFIX/QUERY of a Spark query.",
                ),
                chart(
                    "Records held back",
                    top(
                        "max by (topic, partition) (kafka_cluster_partition_laststableoffsetlag{@})",
                        "topic",
                        "partition",
                    ),
                    text="Readers of committed records do not see them yet.",
                ),
            ),
        ),
    ),
)

SPARK_NAME = "barnabas_spark_query_"

SPARK = Dashboard(
    "spark",
    "barnabas: Spark pipelines",
    "Streaming queries by the page of barnabas.spark.serve_metrics, and the transactions of their sinks.",
    (QUERY,),
    'query=~"$query"',
    (
        Row(
            "Now",
            (
                stat("Queries that run", f"sum({SPARK_NAME}active{{@}})", ((1, "green"),), base="red"),
                stat("Queries that have ended", f"count({SPARK_NAME}active{{@}} == 0) or vector(0)", ONE_IS_BAD),
                stat("Failures, 24 h", f"sum(increase({SPARK_NAME}failures_total{{@}}[24h]))", ((0.5, "red"),)),
                stat(
                    "Oldest unread record",
                    f"max({SPARK_NAME}lag_seconds{{@}})",
                    ((60, "orange"), (300, "red")),
                    unit="s",
                ),
                stat(
                    "Longest since a trigger",
                    f"max(time() - {SPARK_NAME}last_progress_timestamp_seconds{{@}})",
                    ((300, "orange"), (600, "red")),
                    unit="s",
                ),
                stat(
                    "Ranges skipped, 24 h",
                    f"sum(increase({SPARK_NAME}skipped_ranges_total[24h])) or vector(0)",
                    ((0.5, "red"),),
                    text="Records that were gone before a query read them.",
                ),
            ),
        ),
        Row(
            "Queries",
            (
                chart(
                    "Rows in",
                    (f"sum by (query) (rate({SPARK_NAME}input_rows_total{{@}}[$__rate_interval]))", "{{query}}"),
                    unit="cps",
                ),
                chart(
                    "Rows a second of the last batch",
                    (f"{SPARK_NAME}processed_rows_per_second{{@}}", "{{query}}"),
                    unit="cps",
                ),
                chart(
                    "Duration of batches, 95 %",
                    (
                        f"histogram_quantile(0.95, sum by (query, le)"
                        f" (rate({SPARK_NAME}batch_duration_seconds_bucket{{@}}[$__rate_interval])))",
                        "{{query}}",
                    ),
                    unit="s",
                ),
                chart("Lag", (f"{SPARK_NAME}lag_records{{@}}", "{{query}} {{topic}}")),
                chart(
                    "Age of the oldest unread record",
                    (f"{SPARK_NAME}lag_seconds{{@}}", "{{query}} {{topic}}"),
                    unit="s",
                    steps=((300, "red"),),
                ),
                chart("Duration of the last batch", (f"{SPARK_NAME}last_batch_seconds{{@}}", "{{query}}"), unit="s"),
            ),
        ),
        Row(
            "Losses and sinks",
            (
                chart(
                    "Late rows dropped",
                    (
                        f"sum by (query) (increase({SPARK_NAME}late_rows_dropped_total{{@}}[$__rate_interval]))",
                        "{{query}}",
                    ),
                ),
                chart(
                    "Offsets skipped",
                    (f"{SPARK_NAME}skipped_offsets_total", "{{query}} {{topic}}"),
                    text="Since the losses topic begins; nothing without a losses topic.",
                ),
                chart(
                    "Transactions of sinks, open for ten seconds and more",
                    ('max by (owner) (barnabas_transaction_ongoing_seconds{owner=~".+/.+"})', "{{owner}}"),
                    unit="s",
                    steps=((300, "red"),),
                ),
            ),
        ),
    ),
)

DASHBOARDS = (CLUSTER, BROKER, GROUPS, SPARK)
