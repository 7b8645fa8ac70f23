"""`barnabas verify` over the wire, on a broker that is right and behind a proxy that lies: only the lies are found.

`BARNABAS_VERIFY_BROKER=apache-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.verify.run import Run, Settings
from tests.conform.brokers import broker
from tests.verify import lying_proxy
from tests.verify.lying_proxy import Lie, LyingProxy

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

SECONDS = 6


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    name = os.environ.get("BARNABAS_VERIFY_BROKER", "barnabas")
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        # What crashed clients leave open is waited for at the end.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    }
    with broker(name, tmp_path_factory.mktemp("broker"), settings) as running:
        yield running.bootstrap_servers


def settings(bootstrap: str, protocol: str) -> Settings:
    return Settings(bootstrap, seconds=SECONDS, protocol=protocol, transaction_timeout_ms=3000, call_timeout_s=10)


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_nothing_is_wrong_without_a_lie(bootstrap: str, protocol: str, tmp_path: Path) -> None:
    with LyingProxy(bootstrap, Lie()) as proxy:
        verdict = Run(
            Settings(proxy.bootstrap_servers, seconds=SECONDS, protocol=protocol), tmp_path / "history.jsonl"
        )()
    assert verdict.valid, [each.message for each in verdict.anomalies[:3]]
    assert verdict.statistics["operations"]["txn"]["ok"] > 20


LIES = {
    lying_proxy.DropsRecords: {"unseen", "torn-transaction", "lost-write"},
    lying_proxy.CommitsAborts: {"aborted-read"},
    lying_proxy.AbortsCommits: {"unseen", "lost-write"},
    lying_proxy.ReadsUncommitted: {"aborted-read", "precommitted-read", "G1c"},
    lying_proxy.SkipsRecords: {"poll-skip", "int-poll-skip", "consumed-never"},
    lying_proxy.ForgetsOffsets: {"consumed-twice"},
}


@pytest.mark.parametrize("protocol", ["v1", "v2"])
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_lie_is_found(bootstrap: str, protocol: str, lie: type[Lie], tmp_path: Path) -> None:
    liar = lie()
    with LyingProxy(bootstrap, liar) as proxy:
        verdict = Run(
            Settings(proxy.bootstrap_servers, seconds=SECONDS, protocol=protocol), tmp_path / "history.jsonl"
        )()
    assert liar.told
    assert verdict.counts().keys() & LIES[lie], (liar.told, verdict.counts())
