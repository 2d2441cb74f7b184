"""Minimum s-t cut of a directed graph: the cheapest set of edges that parts source from sink.

Dinic's algorithm (E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks
with power estimation", 1970): maximum flow by blocking flows on breadth-first level graphs.
"""

from collections import deque
from collections.abc import Hashable

INFINITY = float("inf")


class FlowNetwork:
    """Nodes are any hashable; edges have capacities. Build, then call `source_side` once."""

    def __init__(self) -> None:
        self._number: dict[Hashable, int] = {}
        self._edges_of: list[list[int]] = []
        self._to: list[int] = []
        self._capacity: list[float] = []

    def _node(self, name: Hashable) -> int:
        if name not in self._number:
            self._number[name] = len(self._edges_of)
            self._edges_of.append([])
        return self._number[name]

    def add_edge(self, a: Hashable, b: Hashable, capacity: float) -> None:
        """An edge that costs `capacity` when `a` is on the source side and `b` is not."""
        for start, end, room in ((a, b, capacity), (b, a, 0.0)):
            self._edges_of[self._node(start)].append(len(self._to))
            self._to.append(self._node(end))
            self._capacity.append(room)

    def source_side(self, source: Hashable, sink: Hashable) -> set[Hashable]:
        """The nodes on the source's side of a minimum cut; the smallest such set."""
        s, t = self._node(source), self._node(sink)
        while (level := self._levels(s))[t] >= 0:
            self._blocking_flow(s, t, level)
        return {name for name, i in self._number.items() if level[i] >= 0}

    def _levels(self, s: int) -> list[int]:
        level = [-1] * len(self._edges_of)
        level[s] = 0
        queue = deque([s])
        while queue:
            node = queue.popleft()
            for e in self._edges_of[node]:
                if self._capacity[e] > 0 and level[self._to[e]] < 0:
                    level[self._to[e]] = level[node] + 1
                    queue.append(self._to[e])
        return level

    def _blocking_flow(self, s: int, t: int, level: list[int]) -> None:
        """Push flow along level-increasing paths until none is left; depth-first, iterative."""
        left = [len(edges) for edges in self._edges_of]
        path: list[int] = []
        node = s
        while True:
            if node == t:
                node = self._augment(path, s)
                continue
            edge = self._next_edge(node, left, level)
            if edge is not None:
                path.append(edge)
                node = self._to[edge]
            elif path:
                node = self._to[path.pop() ^ 1]
                left[node] -= 1
            else:
                return

    def _next_edge(self, node: int, left: list[int], level: list[int]) -> int | None:
        edges = self._edges_of[node]
        while left[node]:
            e = edges[left[node] - 1]
            if self._capacity[e] > 0 and level[self._to[e]] == level[node] + 1:
                return e
            left[node] -= 1
        return None

    def _augment(self, path: list[int], s: int) -> int:
        """Send what fits along `path`; drop its first full edge and what follows it."""
        flow = min(self._capacity[e] for e in path)
        for e in path:
            self._capacity[e] -= flow
            self._capacity[e ^ 1] += flow
        full = next(i for i, e in enumerate(path) if self._capacity[e] <= 0)
        node = self._to[path[full] ^ 1]
        del path[full:]
        return node if path or full == 0 else s
