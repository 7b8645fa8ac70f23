"""Write `docs/reference.md`, the public API, from its docstrings: `python tools/write_reference.py`.

The sources are read and not imported, so the page is the same without Spark. A class is its docstring, what it is made from, and its
public methods and properties; a dataclass also its fields. A method of `Admin` is the function that it gathers. Something public without
a docstring is an error.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "barnabas"
PAGE = ROOT / "docs" / "reference.md"
WIDTH = 100
INTRODUCTION = """# Reference of the Python API

This page is generated from the docstrings: `make docs`. What it does not name may change without a word. For the command
line there is [a page of its own](cli.md), for settings [another](configuration.md).
"""
FIXTURES = (
    "barnabas", "barnabas_config", "barnabas_security", "barnabas_broker",
    "barnabas_cluster", "barnabas_cluster_config", "barnabas_cluster_brokers",
)  # fmt: skip
VALUES = (
    ("cluster_metadata", ("TopicPartition", "Node", "TopicMetadata", "PartitionMetadata")),
    ("topics", ("NewTopic", "CreatedTopic")),
    ("partition_descriptions", ("PartitionDescription",)),
    ("offsets", ("OffsetAndTimestamp",)),
    ("configs", ("ConfigResource", "ConfigEntry", "ConfigChange")),
    ("groups", ("GroupListing", "GroupRebalance")),
    ("group_descriptions", ("GroupDescription", "GroupMember")),
    ("group_offsets", ("CommittedOffset",)),
    ("transactions", ("TransactionListing", "TransactionDescription")),
    ("brokers", ("ClusterDescription", "LogDir", "ReplicaSize", "ProducerState")),
    ("quorum", ("Quorum", "QuorumReplica")),
    ("reassignments", ("Reassignment",)),
    ("quotas", ("Quota",)),
    ("cuts", ("Cut",)),
)
Section = tuple[str, str, list[tuple[str, str, str]]]
SECTIONS: list[Section] = [
    (
        "A broker or a cluster in a test",
        "How to use them: [testing](testing.md), [testing failures](testing-failures.md).",
        [
            ("barnabas.", "embedded/broker", "Broker"),
            ("barnabas.", "embedded/cluster", "Cluster"),
            ("", "embedded/secured_clients", "SecuredClients"),
            ("", "embedded/cluster_faults", "ClusterFaults"),
            ("", "embedded/faults_in_answers", "FaultsInAnswers"),
            ("barnabas.", "embedded/fault_tickets", "InjectedFault"),
            ("barnabas.", "embedded/request_log", "ObservedRequest"),
            ("barnabas.", "*", "ConfigError"),
            ("barnabas.", "*", "CannotStart"),
            ("barnabas.", "*", "KafkaError"),
        ],
    ),
    (
        "A cluster in virtual time",
        "How to use it: [simulation](simulation.md).",
        [
            ("simulation.", "simulation/runs", "run"),
            ("simulation.", "simulation/runs", "Run"),
            ("simulation.", "simulation/cluster", "Cluster"),
            ("simulation.", "simulation/process", "Process"),
            ("simulation.", "simulation/runs", "Hung"),
            ("simulation.", "simulation/node", "NodeDied"),
        ],
    ),
    (
        "Fixtures of pytest",
        "They are there without an import as soon as barnabas is installed.",
        [("", "pytest_plugin", name) for name in FIXTURES],
    ),
    (
        "Administration",
        "An ordinary client, for barnabas and Apache Kafka: `from barnabas.client.admin import Admin`.",
        [("", "client/admin", "Admin"), ("", "client/outcome", "result"), ("", "client/outcome", "results")],
    ),
    (
        "What Admin takes and returns",
        "All of them are in `barnabas.client.admin`.",
        [("", f"client/{module}", name) for module, names in VALUES for name in names],
    ),
    (
        "Hot keys",
        "How to use them: [keys](keys.md).",
        [
            ("barnabas.client.salted_keys.", "client/salted_keys", "SaltedKeys"),
            ("barnabas.spark.salted_keys.", "spark/salted_keys", "salted"),
            ("barnabas.spark.salted_keys.", "spark/salted_keys", "original"),
            ("barnabas.spark.key_report.", "spark/key_report", "key_report"),
            ("barnabas.client.key_report.", "client/key_report", "KeyReport"),
            ("barnabas.client.key_report.", "client/key_report", "CountedPartition"),
            ("barnabas.client.key_report.", "client/key_report", "Choice"),
        ],
    ),
    (
        "Topics as Arrow",
        "How to use it, also with DuckDB and polars: [reading without Spark](read.md).",
        [("barnabas.", "arrow/read", "read"), ("barnabas.arrow.", "arrow/records", "Records")],
    ),
    (
        "Retries and dead letters",
        "How to use them, and what they guarantee: [retries](retries.md).",
        [
            ("barnabas.retries.", "retries/consumer", "RetryingConsumer"),
            ("barnabas.retries.", "retries/policy", "RetryPolicy"),
            ("barnabas.retries.", "retries/record", "Record"),
            ("barnabas.retries.", "retries/record", "Output"),
            ("barnabas.retries.", "retries/record", "Later"),
        ],
    ),
    (
        "Large messages",
        "How to use them, and what they cost: [large messages](large-messages.md).",
        [
            ("barnabas.claims.", "claims/producer", "ClaimProducer"),
            ("barnabas.claims.", "claims/consumer", "ClaimConsumer"),
            ("barnabas.claims.", "claims/consumer", "ClaimedMessage"),
            ("barnabas.claims.", "claims/claim", "Claim"),
            ("barnabas.claims.", "claims/store", "open_store"),
            ("barnabas.claims.", "claims/errors", "ClaimError"),
            ("barnabas.claims.", "claims/errors", "PayloadError"),
            ("barnabas.claims.", "claims/errors", "StoreError"),
            ("barnabas.spark.claims.", "spark/claims", "to_claims"),
            ("barnabas.spark.claims.", "spark/claims", "from_claims"),
        ],
    ),
    (
        "Spark",
        '`format("barnabas")` needs no import; its options are in [Spark](spark.md) and [writing from Spark](spark-sink.md).',
        [
            ("barnabas.spark.", "spark/queries/start", "start"),
            ("barnabas.spark.", "spark/queries/query_listener", "serve_metrics"),
            ("barnabas.spark.", "spark/decoding/decode", "decode"),
            ("barnabas.spark.", "spark/encoding/encode", "encode"),
            ("barnabas.schemas.pull.", "schemas/pull", "pull"),
            ("barnabas.spark.retries.", "spark/retries", "read"),
            ("barnabas.spark.retries.", "spark/retries", "attempt"),
            ("barnabas.spark.tables.", "spark/tables/delta_table", "delta_writer"),
            ("barnabas.spark.tables.", "spark/tables/iceberg_table", "iceberg_writer"),
        ],
    ),
]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def module(name: str) -> ast.Module:
    return ast.parse((SOURCE / f"{name}.py").read_text())


def find(name: str, thing: str) -> ast.ClassDef | Function:
    """Return a class or a function of a module, by its name; `*` is the only module that has a class of that name."""
    if name == "*":
        (path,) = [path for path in SOURCE.rglob("*.py") if f"\nclass {thing}(" in path.read_text()]
        name = str(path.relative_to(SOURCE).with_suffix(""))
    for node in module(name).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == thing:
            return node
    raise LookupError(f"{name} has no {thing}")


def docstring(node: ast.ClassDef | Function, of: str = "") -> str:
    text = ast.get_docstring(node)
    if not text:
        raise LookupError(f"{of}{node.name} has no docstring")
    return text


def prose(text: str) -> str:
    """Return a docstring as a page has it: its sections are lists, all else is as it was written."""
    parts = re.split(r"^(Args|Attributes|Returns|Raises):\n((?:^(?: .*)?\n?)+)", text, flags=re.MULTILINE)
    made = [parts[0].strip()]
    for title, body, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        made += [f"*{title}*", _items(title, textwrap.dedent(body).strip()), after.strip()]
    return "\n\n".join(filter(None, made))


def _items(title: str, body: str) -> str:
    if title == "Returns":
        return " ".join(body.split())
    lines = [" ".join(entry.split()) for entry in re.split(r"\n(?=\S)", body)]
    return "\n".join(re.sub(r"^([\w*, ]+): ", lambda named: f"- {_code(named[1])}: ", line) for line in lines)


def _code(names: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in names.split(","))


def signature(name: str, function: Function, *, left_out: int = 0) -> str:
    """Return a call of a function without its first arguments; one argument a line if it does not fit."""
    given = list(_arguments(function.args))[left_out:]
    returned = ""
    if function.returns is not None and function.name != "__init__":
        returned = f" -> {ast.unparse(function.returns)}"
    line = f"{name}({', '.join(given)}){returned}"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n{''.join(f'    {each},{chr(10)}' for each in given)}){returned}"


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    yield from map(_argument, positional, [*missing, *arguments.defaults])
    if arguments.vararg is not None:
        yield f"*{_argument(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    yield from map(_argument, arguments.kwonlyargs, arguments.kw_defaults)
    if arguments.kwarg is not None:
        yield f"**{_argument(arguments.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    equals = " = " if argument.annotation is not None else "="
    return ast.unparse(argument) + ("" if default is None else f"{equals}{ast.unparse(default)}")


def entry(prefix: str, where: str, thing: str) -> Iterator[str]:
    """Yield the paragraphs of a class or a function."""
    node = find(where, thing)
    yield f"### {prefix}{thing}"
    if isinstance(node, ast.ClassDef):
        yield from _class(prefix, node)
    elif where == "pytest_plugin":
        yield prose(docstring(node))
    else:
        yield f"```python\n{signature(f'{prefix}{thing}', node)}\n```"
        yield prose(docstring(node))


def _class(prefix: str, node: ast.ClassDef) -> Iterator[str]:
    made = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and not each.target.id.startswith("_")]  # type: ignore[union-attr]
    if made is not None and not _is_error(node):
        yield f"```python\n{signature(f'{prefix}{node.name}', made, left_out=1)}\n```"
    elif fields:
        yield "```python\n" + "\n".join(map(ast.unparse, fields)) + "\n```"
    yield prose(docstring(node))
    for each in node.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and not each.name.startswith("_"):
            yield from _member(node.name, each)
        elif isinstance(each, ast.Assign) and ast.unparse(each.value).startswith("_method("):
            of, _, name = ast.unparse(each.value).removeprefix("_method(").removesuffix(")").partition(".")
            gathered = find(f"client/{of}", name)
            assert not isinstance(gathered, ast.ClassDef)
            yield from _member(node.name, gathered)


def _member(owner: str, function: Function) -> Iterator[str]:
    """Yield a method or a property; the first argument, `self` or a method's cluster, is left out."""
    is_property = any(ast.unparse(one) == "property" for one in function.decorator_list)
    if is_property and function.returns is not None:
        line = f"{function.name}: {ast.unparse(function.returns)}"
    else:
        line = signature(function.name, function, left_out=1)
    yield f"#### {owner}.{function.name}"
    yield f"```python\n{line}\n```"
    yield prose(docstring(function, f"{owner}."))


def _is_error(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith(("Exception", "Error")) for base in node.bases)


def page() -> str:
    """Return the whole page."""
    paragraphs = [INTRODUCTION.strip()]
    for title, about, things in SECTIONS:
        paragraphs += [f"## {title}", about]
        for thing in things:
            paragraphs += entry(*thing)
    return "\n\n".join(paragraphs) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
