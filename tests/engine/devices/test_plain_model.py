"""Random traces give what the rules give, written out a second time and as plainly as possible."""

from __future__ import annotations

import random
from typing import Any

import pytest
from plain_model import MIB, PlainModel

from stridescope.engine.devices.trace_replay import TraceReplay

OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {}),
    ("max_split_size_mb:20", {"max_split": 20 * MIB}),
    ("max_split_size_mb:32,max_non_split_rounding_mb:24", {"max_split": 32 * MIB, "rounding": 24 * MIB}),
    ("roundup_power2_divisions:4", {"divisions": 4}),
    ("garbage_collection_threshold:0.4", {"threshold": 0.4}),
    ("garbage_collection_threshold:0.6,max_split_size_mb:24", {"threshold": 0.6, "max_split": 24 * MIB}),
    ("large_segment_size_mb:12", {"large_segment": 12 * MIB, "rounding": 12 * MIB}),
)
FIXED = (1, 512, 513, MIB, MIB + 1, 10 * MIB - 512, 10 * MIB, 20 * MIB, 36 * MIB)


def random_trace(seed: int) -> dict[str, Any]:
    """Sixty calls on a device that is often too small."""
    chance = random.Random(seed)
    ops: list[list[Any]] = [["pool", "p", chance.randint(0, 1), 0], ["pool", "q", 0, 1]]
    names: list[str] = []
    inside: list[str] = []
    for number in range(60):
        turn = chance.random()
        if turn < 0.5:
            size = chance.choice([chance.randint(1, 4096), chance.randint(1, 3 * MIB), chance.randint(MIB, 45 * MIB),
                                  chance.choice(FIXED)])  # fmt: skip
            names.append(f"b{number}")
            ops.append(["alloc", names[-1], size, chance.choice([0, 0, 0, 1, 2])])
        elif turn < 0.75 and names:
            ops.append(["free", names.pop(chance.randrange(len(names)))])
        elif turn < 0.83 and names:
            ops.append(["record", chance.choice(names), chance.randint(0, 2)])
        elif turn < 0.9:
            ops.append(["busy", chance.randint(1, 2), chance.randint(0, 1)])
        elif turn < 0.93:
            ops.append(["empty"])
        elif inside and chance.random() < 0.6:
            ops.append(["exit", inside.pop()])
        else:
            inside.append(chance.choice("pq"))
            ops.append(["enter", inside[-1]])
    total = chance.choice([64, 128, 256]) * MIB
    return {"id": str(seed), "total": total, "fraction": chance.choice([1.0, 0.7]), "ops": ops}


@pytest.mark.parametrize("seed", range(280))
def test_the_allocator_decides_as_the_plain_rules_do(seed: int) -> None:
    trace, (conf, options) = random_trace(seed), OPTIONS[seed % len(OPTIONS)]
    expected = PlainModel(trace, **options).result()
    found = TraceReplay({**trace, "conf": conf}).result()
    assert found["addresses"] == expected["addresses"]
    kept = [{key: segment[key] for key in ("at", "pool", "stream", "type", "blocks")} for segment in found["segments"]]
    assert kept == expected["segments"]
    assert {name: found["stats"].get(name, 0) for name in expected["counts"]} == expected["counts"]
