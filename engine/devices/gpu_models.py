"""The GPU models that can be simulated: figures from the makers' public data sheets."""

from __future__ import annotations

import dataclasses

GIB = 1 << 30


@dataclasses.dataclass(frozen=True, slots=True)
class GPUModel:
    """What decides how long simulated work takes.

    Bandwidths are bytes per nanosecond (numerically GB/s), the throughput is float32 operations per nanosecond.
    """

    name: str
    capability: tuple[int, int]
    total_memory: int
    multi_processor_count: int
    max_threads_per_multi_processor: int
    l2_cache_size: int
    memory_bandwidth: float
    throughput: float
    pinned_bandwidth: float
    pageable_bandwidth: float
    launch_ns: int = 4_000
    kernel_floor_ns: int = 2_000
    malloc_ns: int = 150_000
    free_ns: int = 100_000


MODELS: tuple[GPUModel, ...] = (
    GPUModel("GeForce RTX 4060", (8, 9), 8 * GIB, 24, 1536, 24 << 20, 272.0, 15_110.0, 12.0, 6.0),
    GPUModel("Tesla T4", (7, 5), 16 * GIB, 40, 1024, 4 << 20, 320.0, 8_100.0, 12.0, 5.0),
    GPUModel("A100-SXM4-40GB", (8, 0), 40 * GIB, 108, 2048, 40 << 20, 1_555.0, 19_500.0, 25.0, 8.0),
    GPUModel("H100 80GB HBM3", (9, 0), 80 * GIB, 132, 2048, 50 << 20, 3_350.0, 66_900.0, 50.0, 10.0),
    GPUModel("H200", (9, 0), 141 * GIB, 132, 2048, 50 << 20, 4_800.0, 66_900.0, 50.0, 10.0),
)
DEFAULT_MODEL = MODELS[0].name


def gpu_model(name: str) -> GPUModel:
    """The model of that name; raises ValueError naming those there are."""
    for model in MODELS:
        if model.name.lower() == name.lower():
            return model
    raise ValueError(f"no GPU model '{name}': choose one of {', '.join(model.name for model in MODELS)}")
