"""Where the nodes of a directed acyclic graph lie: layers from consumers down to what they consumed.

Up to :data:`CAREFUL` nodes the layout is Sugiyama's in three strokes (layers, order by barycentres, exact least-squares
columns); beyond that it streams lanes, which never moves a placed node. Numbers in, numbers out.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence

import numpy as np

CAREFUL = 1500
QUICK = 400  # nodes: larger graphs get fewer sweeps
_LONGEST_CHAIN = 40  # a longer edge is drawn straight: its dummies would push everything aside
_DUMMY_WIDTH = 0.3
_LEAF_WEIGHT = 1e-4
_SWEEPS = 6

Edge = tuple[int, int]


def place(count: int, edges: Sequence[Edge]) -> tuple[np.ndarray, np.ndarray]:
    """Return columns (floats, one node wide each) and layers (0 at the bottom) of nodes 0 … count - 1.

    An edge leads from a consumer to what it consumed, which lies below it.
    """
    if not count:
        return np.zeros(0), np.zeros(0, np.int64)
    below: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in dict.fromkeys(edges):
        below[upper].append(lower)
    layers = _layers(below)
    if count > CAREFUL:
        return _lanes(below, layers), np.asarray(layers)
    return _columns(below, layers)[:count], np.asarray(layers)


def _layers(below: list[list[int]]) -> list[int]:
    """Return the longest way down from each output, and for what it consumed the layer below its nearest consumer.

    So a parameter stands beside the op that takes it, and not in one wide row at the bottom with all others.
    """
    above: list[list[int]] = [[] for _ in below]
    waiting = [len(children) for children in below]
    for node, children in enumerate(below):
        for child in children:
            above[child].append(node)
    layers, ready = [0] * len(below), [n for n, w in enumerate(waiting) if not w]
    while ready:
        node = ready.pop()
        for parent in above[node]:
            layers[parent] = max(layers[parent], layers[node] + 1)
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
    for node in sorted(range(len(below)), key=layers.__getitem__, reverse=True):
        if above[node]:
            layers[node] = min(layers[parent] for parent in above[node]) - 1
    return layers


def _columns(below: list[list[int]], layers: list[int]) -> np.ndarray:
    below, layers, real = _with_dummies(below, layers)
    above: list[list[int]] = [[] for _ in below]
    for node, children in enumerate(below):
        for child in children:
            above[child].append(node)
    rows = _first_order(below, above, layers)
    for sweep in range(_SWEEPS if real <= QUICK else 2):
        _sort_rows(rows, above if sweep % 2 == 0 else below, from_top=sweep % 2 == 0)
    widths = np.array([1.0 if node < real else _DUMMY_WIDTH for node in range(len(below))])
    return _straighten(rows, above, below, widths)


def _with_dummies(below: list[list[int]], layers: list[int]) -> tuple[list[list[int]], list[int], int]:
    """Cut edges that skip layers into chains of dummy nodes, so that they get a lane of their own."""
    real, longer, levels = len(below), [list(c) for c in below], list(layers)
    for node in range(real):
        for slot, child in enumerate(below[node]):
            span = layers[node] - layers[child]
            if 1 < span <= _LONGEST_CHAIN:
                first = len(longer)
                longer += [[first + step + 1] for step in range(span - 1)]
                longer[-1] = [child]
                levels += [layers[node] - step - 1 for step in range(span - 1)]
                longer[node][slot] = first
    return longer, levels, real


def _first_order(below: list[list[int]], above: list[list[int]], layers: list[int]) -> list[list[int]]:
    """Return the rows, bottom first, in the order in which a walk down from the outputs meets the nodes."""
    rows: list[list[int]] = [[] for _ in range(max(layers) + 1)]
    seen = [False] * len(below)
    for root in sorted((n for n in range(len(below)) if not above[n]), key=lambda n: -layers[n]):
        stack = [root]
        while stack:
            node = stack.pop()
            if not seen[node]:
                seen[node] = True
                rows[layers[node]].append(node)
                stack += reversed(below[node])
    return rows


def _sort_rows(rows: list[list[int]], neighbours: list[list[int]], *, from_top: bool) -> None:
    """Sort each row by the mean place of its neighbours in the row just sorted."""
    place = {node: float(i) for row in rows for i, node in enumerate(row)}
    for row in reversed(rows) if from_top else rows:
        centre = {
            n: sum(place[m] for m in neighbours[n]) / len(neighbours[n]) if neighbours[n] else place[n] for n in row
        }
        row.sort(key=centre.__getitem__)
        place.update((node, float(i)) for i, node in enumerate(row))


def _straighten(
    rows: list[list[int]], above: list[list[int]], below: list[list[int]], widths: np.ndarray
) -> np.ndarray:
    """Return columns: each row as near to its neighbours' means as its order and widths allow.

    What has little below it weighs little, so that a long chain stays straight while its parameters make room.
    """
    weights = _heights(rows, below) ** 3 + _LEAF_WEIGHT
    columns = np.zeros(len(below))
    for row in rows:
        columns[row] = _packed(np.zeros(len(row)), widths[row], weights[row])
    for sweep in range(_SWEEPS + 3 if len(widths) <= 2 * QUICK else 5):  # the last is from above
        neighbours = above if sweep % 2 == 0 else below
        for row in reversed(rows) if sweep % 2 == 0 else rows:
            wanted = np.array([_centre(columns, weights, neighbours[n], columns[n]) for n in row])
            columns[row] = _packed(wanted, widths[row], weights[row])
    return columns - columns.min()


def _heights(rows: list[list[int]], below: list[list[int]]) -> np.ndarray:
    """Return the longest way down from each node, counted in edges."""
    heights = np.zeros(len(below))
    for node in itertools.chain.from_iterable(rows):
        heights[node] = max((heights[child] + 1 for child in below[node]), default=0)
    return heights


def _centre(columns: np.ndarray, weights: np.ndarray, neighbours: list[int], otherwise: float) -> float:
    if len(neighbours) == 1:
        return float(columns[neighbours[0]])
    return float(np.average(columns[neighbours], weights=weights[neighbours])) if neighbours else otherwise


def _packed(wanted: np.ndarray, widths: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the places nearest to ``wanted`` (weighted least squares) that keep the order and do not overlap."""
    half = widths / 2
    starts = np.concatenate(([0.0], np.cumsum(half[:-1] + half[1:])))
    blocks: list[tuple[float, float, int]] = []  # mean, weight, size: isotonic regression by pooling neighbours
    for value, weight in zip((wanted - starts).tolist(), weights.tolist(), strict=True):
        mean, heavy, size = value, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, more, count = blocks.pop()
            mean, heavy, size = (mean * heavy + other * more) / (heavy + more), heavy + more, size + count
        blocks.append((mean, heavy, size))
    return np.concatenate([np.full(size, mean) for mean, _, size in blocks]) + starts


def _lanes(below: list[list[int]], layers: list[int]) -> np.ndarray:
    """Return columns by streaming: a node continues the lane of an input whose last consumer it is."""
    left = [0] * len(below)
    for children in below:
        for child in children:
            left[child] += 1
    lanes = [-1] * len(below)
    free: list[int] = []
    used = 0
    for node in sorted(range(len(below)), key=layers.__getitem__):
        done = []
        for child in below[node]:
            left[child] -= 1
            if not left[child]:
                done.append(lanes[child])
        if not done and not free:
            free, used = [used], used + 1
        lanes[node] = min(done) if done else heapq.heappop(free)
        for lane in done:
            if lane != lanes[node]:
                heapq.heappush(free, lane)
    return np.asarray(lanes, float)
