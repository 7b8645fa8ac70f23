"""`barnabas verify` over the wire, on a broker that is right and behind a proxy that lies: only the lies are found.

`BARNABAS_VERIFY_BROKER=apache-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.verify.run import CannotRun, Run, Settings
from barnabas.verify.verdict import Verdict
from tests.conform.brokers import broker
from tests.verify import lying_proxy
from tests.verify.lying_proxy import Lie, LyingProxy

pytestmark = [pytest.mark.conform, pytest.mark.timeout(3600)]

SECONDS = (6, 12, 24, 48)


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


def run_until(enough: Callable[[Verdict], bool], bootstrap: str, lie: Lie, protocol: str, folder: Path) -> Verdict:
    """Run through a proxy with a lie, longer each time, until there is enough to see: on a busy machine little happens in a few seconds."""
    for seconds in SECONDS:
        with LyingProxy(bootstrap, lie) as proxy:
            run = Run(
                Settings(proxy.bootstrap_servers, seconds=seconds, protocol=protocol),
                folder / f"history-{seconds}.jsonl",
            )
            try:
                verdict = run()
            except CannotRun:
                if seconds == SECONDS[-1]:
                    raise
                continue
        if enough(verdict):
            break
    return verdict


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_nothing_is_wrong_without_a_lie(bootstrap: str, protocol: str, tmp_path: Path) -> None:
    def enough(verdict: Verdict) -> bool:
        assert verdict.valid, [each.message for each in verdict.anomalies[:3]]
        return bool(verdict.statistics["operations"]["txn"]["ok"] > 20)

    verdict = run_until(enough, bootstrap, Lie(), protocol, tmp_path)
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
    verdict = run_until(lambda verdict: bool(verdict.counts().keys() & LIES[lie]), bootstrap, liar, protocol, tmp_path)
    assert liar.told
    assert verdict.counts().keys() & LIES[lie], (liar.told, verdict.counts())
