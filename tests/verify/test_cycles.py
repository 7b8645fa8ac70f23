"""Components and cycles of graphs, against a definition that is slow and plain."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from barnabas.verify.cycles import Graph, components, shortest_cycle

graphs = st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 9), max_size=4), max_size=10)


def reachable(graph: Graph, start: int) -> set[int]:
    found: set[int] = set()
    stack = [start]
    while stack:
        for node in graph.get(stack.pop(), ()):
            if node not in found:
                found.add(node)
                stack.append(node)
    return found


@given(graphs)
def test_components(graph: Graph) -> None:
    expected = set()
    for node in range(10):
        together = {other for other in reachable(graph, node) if node in reachable(graph, other)} | {node}
        if len(together) > 1:
            expected.add(frozenset(together))
    assert {frozenset(each) for each in components(graph)} == expected


@given(graphs)
def test_the_witness_is_a_cycle_of_the_graph(graph: Graph) -> None:
    for component in components(graph):
        cycle = shortest_cycle(graph, component)
        assert set(cycle) <= set(component)
        assert len(set(cycle)) == len(cycle)
        assert all(second in graph[first] for first, second in pairwise([*cycle, cycle[0]]))


def test_a_chain_of_a_hundred_thousand_needs_no_deep_stack() -> None:
    size = 100_000
    ring = {node: {(node + 1) % size} for node in range(size)}
    (component,) = components(ring)
    assert len(component) == len(shortest_cycle(ring, component)) == size
