"""Quorums under faults, from seeds: what must hold holds at each event, and once the faults stop everything is committed."""

from __future__ import annotations

import pytest

from tests.raft.quorum_world import World


def settle(world: World) -> None:
    """Let the faults stop; then a leader commits a record, and every node has it."""
    world.heal()
    world.weather.lost = world.weather.fragile = 0.0
    for host in world.hosts.values():
        if host.node is None:
            host.start()
    world.run_until(lambda: world.leader() is not None, 10_000)
    before = len(world.committed_values)

    def written() -> bool:
        leader = world.leader()
        if leader is not None and len(world.committed_values) == before and not world.rng.randrange(50):
            leader.append()
        return len(world.committed_values) > before and all(
            host.node is not None and len(host.log.values(host.node.high_watermark)) == len(world.committed_values)
            for host in world.hosts.values()
        )

    world.run_until(written, 20_000)


def play(seed: int, voters: int, observers: int, steps: int = 120, *, changes: bool = False) -> World:
    """Args: `changes`: leaders add and remove voters, themselves too."""
    world = World(seed, voters, observers)
    rng = world.rng
    world.weather.lost = rng.choice((0.0, 0.02, 0.2))
    world.weather.delay_ms = rng.choice((1, 10, 40))
    world.weather.flush_ms = rng.choice((0, 3, 30, 150))
    world.weather.fragile = rng.choice((0.0, 0.0, 0.3))
    world.weather.repeated = rng.choice((0.0, 0.1))
    for _ in range(steps):
        world.run(rng.choice((1, 3, 10, 30, 100, 200)))
        host = world.hosts[rng.choice(list(world.hosts))]
        if changes and rng.random() < 0.3:
            keys = [each.key for each in world.hosts.values()]
            for each in world.hosts.values():
                each.change_voters(rng.sample(keys, 2))
        match rng.randrange(13):
            case 0 if host.node is not None:
                host.crash()
            case 1 | 2 if host.node is None:
                host.start()
            case 2:
                host.crash()
                host.start()
            case 3:
                world.cut_off(*rng.sample(list(world.hosts), rng.randrange(1, len(world.hosts))))
            case 4:
                pair = rng.sample(list(world.hosts), 2)
                world.weather.cut.add((pair[0], pair[1]))
            case 5 | 6:
                world.heal()
            case 7:
                host.compact()
            case 8:
                leader = world.leader()
                if leader is not None and leader.node is not None and rng.random() < 0.3:
                    leader.do(leader.node.resign())
            case 9:
                for each in rng.sample(list(world.hosts.values()), 2):
                    each.stand()
            case _:
                for each in world.hosts.values():
                    each.append()
    settle(world)
    return world


SEEDS = range(25)
SHAPES = ((1, 1), (2, 0), (3, 1), (5, 0))
"""Voters and observers."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("voters", "observers"), SHAPES)
def test_a_quorum_under_faults(seed: int, voters: int, observers: int) -> None:
    world = play(seed, voters, observers)
    assert world.committed_values


def test_the_same_seed_is_the_same_run() -> None:
    assert play(7, 3, 1).events == play(7, 3, 1).events


def played_with_changes(seeds: range) -> int:
    """Play these seeds on quorums whose voters change; return how many changes there were."""
    return sum(play(seed, *shape, changes=True).changes for seed in seeds for shape in ((1, 2), (2, 2), (3, 2)))


def test_a_quorum_whose_voters_change_under_faults() -> None:
    assert played_with_changes(range(4)) > 20


@pytest.mark.long
def test_many_quorums_whose_voters_change_under_faults() -> None:
    assert played_with_changes(range(4, 100)) > 1_000
