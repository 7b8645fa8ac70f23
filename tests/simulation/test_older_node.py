"""A cluster of two nodes of the present barnabas and one of an older one runs clean, and what the older one cannot read is caught."""

from __future__ import annotations

import pytest

from tests.older_release import NoHistory
from tests.simulation.cluster import run
from tests.simulation.deliberate_bugs_of_upgrades import BUGS
from tests.simulation.older_node import OlderPackage, load

pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.slow]


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> OlderPackage:
    try:
        return load(tmp_path_factory.mktemp("older"))
    except NoHistory as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_a_cluster_with_an_older_node_runs_clean(seed: int, older: OlderPackage) -> None:
    result = run(seed, older=older)
    assert result.violations == {}
    assert result.counts()["acknowledged batches"] > 0


@pytest.mark.parametrize("name", sorted(BUGS))
def test_what_the_older_node_cannot_read_is_caught(name: str, older: OlderPackage) -> None:
    assert run(1, name).passed, "the present nodes read it"
    assert any(not run(seed, name, older=older).passed for seed in range(1, BUGS[name].seeds + 1))
