"""Which device ``cuda`` is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stridescope.engine.devices import registry

GIB = 1 << 30


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing chosen, nothing made."""
    monkeypatch.delenv(registry.ENVIRONMENT_VARIABLE, raising=False)
    for name in ("_choice", "_devices", "_settings", "_seed"):
        monkeypatch.setattr(registry, name, None)
    monkeypatch.setattr(registry, "_watchers", [])
    yield


@pytest.mark.parametrize(
    ("text", "size"),
    [("auto", 8 * GIB), ("sim", 8 * GIB), ("sim:16GiB", 16 * GIB), ("sim:512M", 512 << 20), ("sim:1.5g", 3 * GIB // 2)],
)
def test_the_size_of_the_simulated_device(text: str, size: int) -> None:
    registry.configure(text)
    (gpu,) = registry.cuda_devices()
    assert gpu.properties.total_memory == size and gpu is registry.current_device()


def test_the_environment_chooses_where_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.ENVIRONMENT_VARIABLE, "sim:2G")
    assert registry.current_device().properties.total_memory == 2 * GIB
    registry.configure("sim:3G")
    assert registry.current_device().properties.total_memory == 3 * GIB


def test_cpu_means_no_device() -> None:
    registry.configure("cpu")
    assert registry.device_count() == 0 and registry.cuda_devices() == []
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        registry.current_device()


def test_counting_makes_no_device() -> None:
    assert registry.device_count() == 1 and not registry.is_initialized()


@pytest.mark.parametrize("text", ["gpu", "sim:", "sim:x", "sim:0", "sim:-1", "", "SIM"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="choose auto, cpu|is no memory size"):
        registry.configure(text)


def test_an_index_that_is_not_there() -> None:
    with pytest.raises(RuntimeError, match="CUDA error: invalid device ordinal"):
        registry.device_at(1)


def test_the_options_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:30")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:40")
    assert registry.current_device().allocator.settings.max_split_size == 40 << 20


def test_a_bad_option_fails_when_the_device_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "foo:1")
    with pytest.raises(ValueError, match="Unrecognized key 'foo' in CUDA allocator config"):
        registry.current_device()


def test_a_seed_set_before_the_first_use_counts() -> None:
    registry.seed_all_devices(5)
    assert registry.current_device().generator.seed == 5


def test_it_says_what_cuda_is_and_why() -> None:
    registry.configure("sim:16G")
    described = "cuda: NVIDIA GeForce RTX 4060 (simulated), 16.00 GiB, because the device was chosen as 'sim:16G'"
    assert registry.describe() == described and not registry.is_initialized()
    registry.configure("cpu")
    assert registry.describe() == "cuda: none, because the device was chosen as 'cpu'"


def test_who_waits_for_the_first_use_is_told_once_there_is_a_device() -> None:
    told: list[str] = []
    registry.on_first_use(lambda: told.append("early"))
    assert told == []
    registry.cuda_devices()
    registry.on_first_use(lambda: told.append("late"))
    assert told == ["early", "late"]
