"""Cycles of transactions that each come before the next.

    ww   T1's record is directly before T2's in the log of some key
    wr   T2 read a record that T1 sent

    G0       a cycle of ww: writes of transactions interleave. Kafka permits it: transactions do not isolate writes.
    G1c      a cycle of wr alone. With read_committed a record is visible only after its transaction's commit, so a chain of
             reads goes forward in time; a cycle means that a read came too early.
    G1c-ww   a cycle with both: follows from G0, and is permitted too.

Plain sends and polls take part too: a plain send is in the log immediately, a plain poll sends nothing.

Method: strongly connected components (Tarjan, without recursion) and one shortest cycle of each as the witness.
Source: Adya, Liskov, O'Neil, "Generalized Isolation Level Definitions" (2000), the names G0 and G1c.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import pairwise

from barnabas.verify.analysis import Analysis
from barnabas.verify.anomalies import ALLOWED, Anomaly
from barnabas.verify.history import Op, Outcome

Graph = dict[int, set[int]]
"""Successors, by an operation's index."""


def cycles(analysis: Analysis) -> Iterator[Anomaly]:
    """Yield one anomaly for each component that has a cycle."""
    ww, wr = write_write(analysis), write_read(analysis)
    for graph, name in ((ww, "G0"), (wr, "G1c"), (_joined(ww, wr), "G1c-ww")):
        for component in components(graph):
            found = shortest_cycle(graph, component)
            if name == "G1c-ww" and not _mixed(found, ww, wr):
                continue
            ops = tuple(analysis.history.ops[index] for index in found)
            edges = [_edge(analysis, first, second) for first, second in pairwise((*ops, ops[0]))]
            yield Anomaly(name, None, "; ".join(edges), ops, name in ALLOWED, {"size": len(component)})


def write_write(analysis: Analysis) -> Graph:
    """Return edges between the senders of neighbours in each log."""
    graph: Graph = {}
    for key, order in analysis.order.items():
        writers = [analysis.writer_of.get((key, value)) for value in order]
        for first, second in pairwise(writers):
            if first is not None and second is not None and first is not second and Outcome.FAIL not in (
                first.outcome, second.outcome
            ):  # fmt: skip
                graph.setdefault(first.index, set()).add(second.index)
    return graph


def write_read(analysis: Analysis) -> Graph:
    """Return edges from the sender of a record to each of its readers."""
    graph: Graph = {}
    for where, readers in analysis.readers_of.items():
        writer = analysis.writer_of.get(where)
        if writer is None:
            continue
        for reader in readers:
            if reader is not writer and reader.sends:
                graph.setdefault(writer.index, set()).add(reader.index)
    return graph


def _joined(first: Graph, second: Graph) -> Graph:
    return {node: first.get(node, set()) | second.get(node, set()) for node in {*first, *second}}


def _mixed(cycle: list[int], ww: Graph, wr: Graph) -> bool:
    steps = list(pairwise([*cycle, cycle[0]]))
    return not any(all(second in graph.get(first, ()) for first, second in steps) for graph in (ww, wr))


def components(graph: Mapping[int, set[int]]) -> list[list[int]]:
    """Return the strongly connected components of more than one node."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in graph:
        if root in number:
            continue
        work: list[tuple[int, Iterator[int]]] = [(root, iter(graph.get(root, ())))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in number:
                    number[successor] = low[successor] = len(number)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(graph.get(successor, ()))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], number[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    component: list[int] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    if len(component) > 1:
                        found.append(component)
    return found


def shortest_cycle(graph: Mapping[int, set[int]], component: list[int]) -> list[int]:
    """Return a shortest cycle through the component's earliest node."""
    inside = set(component)
    start = min(component)
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for successor in sorted(graph.get(node, ())):
            if successor == start:
                cycle = [node]
                while cycle[-1] != start:
                    cycle.append(came_from[cycle[-1]])
                return cycle[::-1]
            if successor in inside and successor not in came_from:
                came_from[successor] = node
                queue.append(successor)
    raise AssertionError("a strongly connected component has a cycle through each of its nodes")


def _edge(analysis: Analysis, first: Op, second: Op) -> str:
    reads = second.reads()
    for send in first.sends:
        if any(value == send.value for _, value in reads.get(send.key, ())):
            return f"#{second.index} read {send.key}: {send.value} of #{first.index}"
    for key, values in first.writes().items():
        for value in values:
            for other in second.writes().get(key, ()):
                if analysis.distance(key, value, other) == 1:
                    return f"#{first.index} sent {key}: {value} right before {other} of #{second.index}"
    raise AssertionError("an edge of the graph has a reason")
