"""The table that ``torch.cuda.memory_summary()`` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

WIDTH = 75
MEMBERS = ("current", "peak", "allocated", "freed")
POOLS = (("all", ""), ("large_pool", "      from large pool"), ("small_pool", "      from small pool"))
UNITS = ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB")

Cell = Callable[[int, float], str]


def size_cell(size: int, reference: float) -> str:
    """A size in the unit that suits the reference value: one unit up from 768 of them on."""
    unit = 0
    while unit + 1 < len(UNITS) and reference >= 768 * 1024:
        size, reference, unit = size // 1024, reference / 1024, unit + 1
    return f"{size:6d} {UNITS[unit]}"


def count_cell(count: int, reference: float) -> str:
    """A count in ones, thousands or millions, as suits the reference value."""
    unit = 0
    while unit < 2 and reference >= 750_000:
        count, reference, unit = count // 1000, reference / 1000, unit + 1
    return f"{count:7d} {' KM'[unit]} "


METRICS: tuple[tuple[str, str, Cell], ...] = (
    ("allocated_bytes", "Allocated memory", size_cell),
    ("active_bytes", "Active memory", size_cell),
    ("requested_bytes", "Requested memory", size_cell),
    ("reserved_bytes", "GPU reserved memory", size_cell),
    ("inactive_split_bytes", "Non-releasable memory", size_cell),
    ("allocation", "Allocations", count_cell),
    ("active", "Active allocs", count_cell),
    ("segment", "GPU reserved segments", count_cell),
    ("inactive_split", "Non-releasable allocs", count_cell),
)
OVERSIZE = (("oversize_allocations", "Oversize allocations"), ("oversize_segments", "Oversize GPU segments"))


def summary_text(stats: Mapping[str, int], device: int, abbreviated: bool) -> str:
    """The whole table; abbreviated it has one row a metric."""
    lines = [*_head(stats, device)]
    for key, label, cell in METRICS:
        lines.append("-" * WIDTH)
        lines += _metric(stats, key, label, cell, abbreviated)
    for key, label in OVERSIZE:
        values = [stats[f"{key}.{member}"] for member in MEMBERS]
        lines += ["-" * WIDTH, _row(label, [count_cell(value, value) for value in values])]
    lines.append("=" * WIDTH)
    return "".join(f"|{line}|\n" for line in lines)


def _head(stats: Mapping[str, int], device: int) -> Iterator[str]:
    yield "=" * WIDTH
    yield f"{'':18}PyTorch CUDA memory summary, device ID {device:<17d} "
    yield "-" * WIDTH
    ooms, retries = stats["num_ooms"], stats["num_alloc_retries"]
    yield f"{'':12}CUDA OOMs: {ooms:<12d} | {'':7}cudaMalloc retries: {retries:<8d}  "
    yield "=" * WIDTH
    yield "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  "


def _metric(stats: Mapping[str, int], key: str, label: str, cell: Cell, abbreviated: bool) -> Iterator[str]:
    references = [stats[f"{key}.all.{member}"] for member in MEMBERS]
    for pool, name in POOLS[:1] if abbreviated else POOLS:
        values = [stats[f"{key}.{pool}.{member}"] for member in MEMBERS]
        yield _row(name or label, [cell(*pair) for pair in zip(values, references, strict=True)])


def _row(label: str, cells: list[str]) -> str:
    return f" {label:<21} | {' | '.join(cells)} "
