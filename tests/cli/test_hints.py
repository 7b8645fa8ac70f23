"""Every command that an error or a hint names in backquotes works when typed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import barnabas
from barnabas.verify.history import write_history
from tests.documents import Typist, typist
from tests.verify import model

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "barnabas"

# What the source fills in, `{}`, is filled in here, as a user would see it.
TYPED = {
    # These need a broker with an authorizer, or with users.
    "barnabas acl list": "barnabas acl list --help",
    "barnabas token create": "barnabas token create --help",
    "barnabas token describe": "barnabas token describe --help",
    "barnabas user create": "barnabas user create --help",
    "barnabas user password {}": "barnabas user password --help",
    "barnabas config alter topic NAME --set KEY=VALUE": "barnabas config alter topic orders --set retention.ms=-1",
    "barnabas config alter broker 1 --set KEY=VALUE": "barnabas config alter broker 1 --set log.cleaner.threads=2",
    "barnabas config alter broker {} --delete cordoned.log.dirs": "barnabas config alter broker 1 --delete cordoned.log.dirs",
    "barnabas config alter broker {} {}": "barnabas config alter broker 1 --delete num.io.threads",
    "barnabas broker move": "barnabas broker move --help",
    "barnabas broker move {} {} --to {}": "barnabas broker move --help",
    "barnabas config describe {} --all": "barnabas config describe broker --all",
    "barnabas config describe {} --all {}": "barnabas config describe topic --all orders",
    "barnabas storage format {}": "barnabas storage format --help",
    "barnabas storage format --data-dir {}": "barnabas storage format --data-dir new",
    # These need a cluster: `docs/clusters.md`, which is typed too, has one.
    "barnabas cluster drain {}": "barnabas cluster drain 1 --help",
    "barnabas cluster throttle": "barnabas cluster throttle --help",
    "barnabas cluster move {} --to {}": "barnabas cluster move --help",
    "barnabas cluster move {} --to BROKER,…": "barnabas cluster move --help",
    "barnabas cluster throttle off": "barnabas cluster throttle off --help",
    "barnabas cluster voter add NODE --at HOST:PORT": "barnabas cluster voter add 1 --at localhost:9093 --help",
    "barnabas cluster accept-loss": "barnabas cluster accept-loss --help",
    "barnabas cluster {} {} …": "barnabas cluster restart --rolling --help",
    "barnabas cluster resize {} --data-dir {}": "barnabas cluster resize --help",
    "barnabas cluster resize %d --data-dir %s": "barnabas cluster resize --help",
    "barnabas cluster restart --rolling --data-dir {}": "barnabas cluster restart --help",
    "barnabas cluster forget NODE": "barnabas cluster forget 1 --help",
    "barnabas cut delete {}": "barnabas cut delete release",
    "barnabas cut show {}": "barnabas cut show release",
    "barnabas demo --continue {}": "barnabas demo --continue .",
    "barnabas group describe {}": "barnabas group describe shop",
    "barnabas group describe {} --members": "barnabas group describe shop --members",
    "barnabas group reset-offsets {} --all-topics --to-earliest --execute": "barnabas group reset-offsets shop --all-topics"
    " --to-earliest --execute",
    "barnabas perf produce {}": "barnabas perf produce orders -n 10",
    "barnabas start": "barnabas start --data-dir data",
    "barnabas start --nodes": "barnabas start --nodes 1 --data-dir cluster",
    "barnabas start --nodes N": "barnabas start --nodes 1 --data-dir cluster",
    "barnabas replay {} --from start --to TOPIC": "barnabas replay orders --help",
    "barnabas storage format -c FILE": "barnabas storage format -c server.properties",
    "barnabas storage format -t CLUSTER-ID -c FILE": "barnabas storage format -t 4L6g3nShT-eMCtK--X86sw -c server.properties",
    "barnabas topic alter {} -p {}": "barnabas topic alter orders -p 12",
    "barnabas topic alter {} -c {}=2": "barnabas topic alter orders -c min.insync.replicas=2",
    "barnabas topic alter {} -c {}={}": "barnabas topic alter orders -c max.message.bytes=2000000",
    "barnabas topic alter {} -c {}=LogAppendTime": "barnabas topic alter orders -c message.timestamp.type=LogAppendTime",
    "barnabas cluster upgrade --finalize{}": "barnabas cluster upgrade --finalize --feature share.version",
    "barnabas topic apply FILE": "barnabas topic apply --help",
    "barnabas topic export": "barnabas topic export orders out",
    "barnabas topic export TOPIC DIR": "barnabas topic export orders out",
    "barnabas topic export {} {} {}": "barnabas topic export orders out --from start",
    "barnabas topic grow {} -p {}": "barnabas topic grow orders -p 2",
    "barnabas topic grow {} -p {} --ordered": "barnabas topic grow orders -p 2 --ordered --settle 0s",
    "barnabas topic grow --ordered": "barnabas topic grow orders -p 2 --ordered --settle 0s",
    "barnabas topic grow TOPIC -p N --ordered": "barnabas topic grow orders -p 2 --ordered --settle 0s",
    "barnabas config alter group {} --set share.auto.offset.reset=earliest": "barnabas config alter group shop"
    " --set share.auto.offset.reset=earliest",
    # These write into the home directory.
    "barnabas profile": "barnabas profile --help",
    "barnabas profile remove {}": "barnabas profile remove --help",
    "barnabas profile use NAME": "barnabas profile use --help",
    "barnabas replay {} {} --to {}": "barnabas replay orders --from start --to orders --help",
    # These need dead letters, or a query that has died.
    "barnabas dlq list {}": "barnabas dlq list --help",
    "barnabas dlq redrive {}": "barnabas dlq redrive --help",
    "barnabas spark orphans --abort": "barnabas spark orphans --abort --help",
    # It needs a registry.
    "barnabas schemas list": "barnabas schemas list --help",
    "barnabas schemas put {} FILE": "barnabas schemas put --help",
    "barnabas topic create {}": "barnabas topic create another",
    "barnabas topic create {} -b {}": "barnabas topic create another",
    "barnabas topic delete {}": "barnabas topic delete orders",
    "barnabas topic delete {} -b {}{}": "barnabas topic delete orders",
    "barnabas topic describe NAME": "barnabas topic describe orders",
    "barnabas topic describe {}": "barnabas topic describe orders",
    "barnabas txn doctor {}": "barnabas txn doctor orders",
    "barnabas verify --check {}": "barnabas verify --check run.jsonl",
}


def shown(node: ast.expr) -> str:
    """Return a literal text; what an f-string fills in, or a later `format`, is `{}`."""
    if isinstance(node, ast.Constant):
        return re.sub(r"\{\w+\}", "{}", node.value) if isinstance(node.value, str) else ""
    assert isinstance(node, ast.JoinedStr)
    return "".join("{}" if isinstance(part, ast.FormattedValue) else shown(part) for part in node.values)


def texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module that are not docstrings."""
    nodes = list(ast.walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    pieces = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in docstrings | pieces:
            yield shown(node)


@cache
def hints() -> list[str]:
    # Every process of a suite that runs in parallel collects these: the modules without a hint are not parsed.
    hinting = (source for path in SOURCE.rglob("*.py") if "`barnabas" in (source := path.read_text()))
    found = {
        command
        for source in hinting
        for text in texts(ast.parse(source))
        for command in re.findall(r"`(barnabas .+?)`", text)
    }
    return sorted(found)


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


@pytest.fixture
def typing(broker: barnabas.Broker, tmp_path: Path) -> Iterator[Typist]:
    broker.reset()
    with typist(tmp_path, broker.bootstrap_servers, ROOT) as made:
        made.type("barnabas topic create orders")
        made.type("printf 'a\\n' | barnabas produce orders")
        made.type("barnabas consume orders -g shop -n 1")
        made.type("barnabas cut create release orders")
        (tmp_path / "server.properties").write_text("log.dirs=formatted\n")
        write_history(tmp_path / "run.jsonl", model.run(1, steps=50))
        yield made


def test_there_are_hints() -> None:
    assert len(hints()) > 10


@pytest.mark.parametrize("hint", hints())
def test_a_hint_works_when_typed(hint: str, typing: Typist) -> None:
    typing.type(TYPED.get(hint, hint))


def test_what_a_hint_fills_in_is_known_here() -> None:
    assert [hint for hint in hints() if "{" in hint and hint not in TYPED] == []
