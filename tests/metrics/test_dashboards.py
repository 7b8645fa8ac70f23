"""The labels on the page of monitoring are those by which Strimzi's dashboards select."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"

# Every label matcher in `strimzi-kafka.json` and `strimzi-kraft.json` of August 2026 that is not about a topic or a volume.
SELECTORS = (
    ("namespace", "$kubernetes_namespace"),
    ("strimzi_io_cluster", "$strimzi_cluster_name"),
    ("strimzi_io_name", "$strimzi_cluster_name-kafka"),
    ("kubernetes_pod_name", "$strimzi_cluster_name-$kafka_broker"),
    ("kubernetes_pod_name", "$strimzi_cluster_name-$kraft_node"),
    ("pod", "$strimzi_cluster_name-$kafka_broker"),
    ("pod", "$strimzi_cluster_name-$kraft_node"),
    ("container", "kafka"),
)


def labels_of_the_page() -> dict[str, str]:
    first, second = re.findall(r"^ +labels:\n((?: +\w+: \S+\n)+)", PAGE.read_text(), re.MULTILINE)
    assert second == first.replace("kafka-1", "kafka-2")
    return dict(re.findall(r"(\w+): (\S+)", first))


def test_the_labels_of_the_page_are_those_that_strimzis_dashboards_select() -> None:
    labels = labels_of_the_page()
    assert set(labels) == {name for name, _ in SELECTORS}
    # The variables of a dashboard are filled with the labels of what it finds.
    variables = {
        "$kubernetes_namespace": labels["namespace"],
        "$strimzi_cluster_name": labels["strimzi_io_cluster"],
        "$kafka_broker": r"[\w-]+",
        "$kraft_node": r"[\w-]+",
    }
    for name, pattern in SELECTORS:
        for variable, value in variables.items():
            pattern = pattern.replace(variable, value)
        assert re.fullmatch(pattern, labels[name]), (name, pattern)
