"""Write `docs/configuration.md` from the table of settings: `python tools/write_configuration_docs.py`."""

from __future__ import annotations

from pathlib import Path

from barnabas.config.config_table import DEFAULTS, EMBEDDED_DEFAULTS, IMPLIED, config_schema
from barnabas.metadata.config_schema import ConfigKey, ConfigResourceType

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"
INTRODUCTION = """# Configuration

Every setting has Kafka's name, type and default. Topic, group and dynamic broker settings are changed with
`barnabas config alter` or any Kafka tool. A node takes its settings from four places; later ones win:

1. **A properties file**, as Apache Kafka has it: `barnabas start server.properties`, or `--config server.properties`.
   A file for a broker, a controller or both works unchanged, and so does `barnabas storage format -t ID -c FILE`.
2. **The environment**, as in Apache Kafka's container image: `KAFKA_LOG_RETENTION_HOURS=3` is `log.retention.hours=3`.
   `_` stands for `.`, `__` for `_`, `___` for `-`. `KAFKA_ADVERTISED_LISTENERS` without `KAFKA_LISTENERS` listens on
   the same ports of every address. `CLUSTER_ID` is the cluster id of a directory that is formatted now. Empty variables
   and those of Kafka's start scripts (`KAFKA_OPTS`, `KAFKA_HEAP_OPTS`, `KAFKA_LOG4J_LOGGERS` and the like) do not count.
   A broker in a test (`barnabas.Broker()`) does not read the environment.
3. **`--set key=value`**, repeatable; `--override` is the same.
4. **Options**: `--listen`, `--metrics-listen`, `--data-dir`.

A name that does not exist is an error in `--set`, and a warning in a file or the environment; both name the setting
that is most like it. A setting that barnabas accepts and ignores is named in the log if it is not the default.

**Settings that ask for protection are honoured, or stop the start.** A broker must not serve everybody while its owner
believes that it does not. Such are `ssl.*`, `sasl.*`, `authorizer.class.name`,
`super.users` and the like, also of one listener (`listener.name.external.ssl.keystore.location`), and a listener whose
security protocol is not PLAINTEXT. Values that ask for nothing are accepted: defaults, empty ones, `ssl.client.auth=none`,
`allow.everyone.if.no.acl.found=true`. Altering such a setting while the node runs is rejected, too.

This page is generated from the same table that the broker reads: `make docs`.

How to read the tables: *default* `-` means no value; *dynamic* says whether the setting can be changed while the node
runs, for the whole cluster or for one broker; *bounds* are in Kafka's notation.
"""
SECTIONS = (
    (ConfigResourceType.TOPIC, "Topics", "Set per topic; what a topic does not set comes from the broker's synonym."),
    (ConfigResourceType.BROKER, "Brokers", "Read at start, or changed while the node runs where *dynamic* says so."),
    (ConfigResourceType.GROUP, "Groups", "Set per group; the broker's `group.*` setting stands in."),
    (ConfigResourceType.CLIENT_METRICS, "Client metrics", "Set per subscription."),
)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def default_of(key: ConfigKey, *, is_broker: bool) -> str:
    default = IMPLIED.get(key.name, key.default) if is_broker else key.default
    return "-" if default is None else f"`{default}`" if default else "empty"


def synonyms_of(key: ConfigKey, *, is_broker: bool) -> str:
    if is_broker:
        return ""
    return "".join(f" Broker: {', '.join(f'`{name}`' for name, _ in key.synonyms)}." if key.synonyms else "")


def table(kind: ConfigResourceType) -> list[str]:
    is_broker = kind is ConfigResourceType.BROKER
    lines = ["| setting | type | default | bounds | dynamic | meaning |", "|---|---|---|---|---|---|"]
    for key in sorted(config_schema().of(kind).values(), key=lambda key: key.name):
        cells = (
            f"`{key.name}`",
            key.kind.name.lower(),
            default_of(key, is_broker=is_broker),
            f"`{key.valid}`" if key.valid else "",
            key.dynamic,
            key.documentation + synonyms_of(key, is_broker=is_broker),
        )
        lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
    return lines


def differences() -> list[str]:
    lines = ["## Where the defaults differ from Kafka's", ""]
    lines += [f"- `{name}` is `{value}`." for name, value in sorted(DEFAULTS.items())]
    lines += [f"- `{name}` need not be given; one node is `{value}`." for name, value in sorted(IMPLIED.items())]
    lines += [
        f"- Embedded (`barnabas.Broker()`): `{n}` is `{value}`." for n, value in sorted(EMBEDDED_DEFAULTS.items())
    ]
    lines.append(
        "- `barnabas start` without `listeners` and `--listen` serves `127.0.0.1:9092` only; without a directory it asks "
        "for one instead of taking `log.dir`'s default."
    )
    lines.append(
        "- Internal topics have one replica on a single node. In a cluster they wait until there are as many brokers as they have replicas."
    )
    return lines


def page() -> str:
    lines = [INTRODUCTION, *differences()]
    for kind, title, about in SECTIONS:
        lines += ["", f"## {title}", "", about, "", *table(kind)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
