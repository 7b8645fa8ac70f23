"""Write `docs/configuration.md` from the table of settings: `python tools/write_configuration_docs.py`."""

from __future__ import annotations

from pathlib import Path

from barnabas.metadata.config_schema import ConfigKey, ConfigResourceType
from barnabas.server.config_table import DEFAULTS, EMBEDDED_DEFAULTS, IMPLIED, config_schema

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"
INTRODUCTION = """# Configuration

Every setting has Kafka's name, type and default. `barnabas start` takes them from `--config server.properties` and
`--set key=value`; topic, group and dynamic broker settings are changed with `barnabas config alter` or any Kafka tool.
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
    lines.append("- Internal topics get as many replicas as there are live brokers when that is fewer than asked for.")
    return lines


def page() -> str:
    lines = [INTRODUCTION, *differences()]
    for kind, title, about in SECTIONS:
        lines += ["", f"## {title}", "", about, "", *table(kind)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
