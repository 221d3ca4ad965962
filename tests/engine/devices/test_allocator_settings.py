"""PYTORCH_CUDA_ALLOC_CONF: what is accepted, and PyTorch's words for what is not."""

from __future__ import annotations

import pytest

from stridescope.engine.devices.allocator_settings import READERS, UNLIMITED, AllocatorSettings

MIB = 1 << 20
OUT_OF_BOUNDS = "Index out of bounds in ConfigTokenizer"


@pytest.mark.parametrize(
    ("text", "attribute", "value"),
    [
        ("max_split_size_mb:32", "max_split_size", 32 * MIB),
        ("max_split_size_mb:20.5", "max_split_size", 20 * MIB),
        ("max_split_size_mb:25mb", "max_split_size", 25 * MIB),
        (" max_split_size_mb : 30 ,", "max_split_size", 30 * MIB),
        ("max_split_size_mb,40", "max_split_size", 40 * MIB),
        ("max_split_size_mb:30,max_split_size_mb:40", "max_split_size", 40 * MIB),
        ("max_split_size_mb:-1", "max_split_size", (1 << 64) - MIB),
        ("max_non_split_rounding_mb:24", "non_split_rounding", 24 * MIB),
        ("large_segment_size_mb:30", "non_split_rounding", 30 * MIB),
        ("garbage_collection_threshold:1e-1", "garbage_collection_threshold", 0.1),
        ("expandable_segments:True", "expandable_segments", True),
        ("per_process_memory_fraction:1", "per_process_memory_fraction", 1.0),
        ("backend:native", "max_split_size", UNLIMITED),
        ("roundup_power2_divisions:8", "roundup_power2_divisions", [8] * 16),
        ("roundup_power2_divisions:[1:2,4:8,16:4,>:1]", "roundup_power2_divisions", [2, 0, 8, 0, 4] + [1] * 11),
        ("roundup_power2_divisions:[>:4]", "roundup_power2_divisions", [0] + [4] * 15),
        ("roundup_power2_divisions:[64:2]", "roundup_power2_divisions", [2] * 7 + [0] * 9),
        ("roundup_power2_divisions:[]", "roundup_power2_divisions", [0] * 16),
        ("pinned_num_register_threads:8", "pinned_num_register_threads", 8),
    ],
)
def test_accepted(text: str, attribute: str, value: object) -> None:
    assert getattr(AllocatorSettings(text), attribute) == value


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("max_split_size_mb:19", ValueError, "CachingAllocator option max_split_size_mb too small, must be >= 20"),
        ("large_segment_size_mb:30,max_split_size_mb:25", ValueError, "max_split_size_mb too small, must be >= 30"),
        ("max_non_split_rounding_mb:3", ValueError, "option max_non_split_rounding_mb too small, must be >= 20"),
        ("max_split_size_mb:x", ValueError, "stoull"),
        ("max_split_size_mb:[30]", ValueError, "stoull"),
        ("max_split_size_mb:99999999999999999999999", IndexError, "stoull"),
        ("max_split_size_mb", RuntimeError, OUT_OF_BOUNDS),
        ("max_split_size_mb:", RuntimeError, OUT_OF_BOUNDS),
        ("garbage_collection_threshold:1.2", ValueError, "garbage_collect_threshold is invalid, set it in (0.0, 1.0)"),
        ("garbage_collection_threshold:nan", ValueError, "garbage_collect_threshold is invalid, set it in (0.0, 1.0)"),
        ("garbage_collection_threshold:x", ValueError, "stod"),
        ("per_process_memory_fraction:1.1", ValueError, "per_process_memory_fraction is invalid, set it in [0.0, 1.0]"),
        (
            "expandable_segments:true",
            ValueError,
            "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'",
        ),
        ("large_segment_size_mb:10", ValueError, "CachingAllocator option large_segment_size_mb must be > 10 MB"),
        ("roundup_power2_divisions:3", ValueError, "For roundups, the divisions has to be power of 2 "),
        ("roundup_power2_divisions:0", ValueError, "For roundups, the divisions has to be power of 2 "),
        ("roundup_power2_divisions:[1:3]", ValueError, "has to be power of 2 or 0 to disable roundup "),
        ("roundup_power2_divisions:[3:2]", ValueError, "For roundups, the intervals have to be power of 2 "),
        ("roundup_power2_divisions:[1:2", RuntimeError, OUT_OF_BOUNDS),
        ("pinned_num_register_threads:3", ValueError, "Number of register threads has to be power of 2, got 3"),
        ("pinned_num_register_threads:256", ValueError, "should be less than or equal to 128, got 256"),
        ("pinned_reserve_segment_size_mb:0", ValueError, "Pinned reserve segment size has to be greater than 0"),
        ("backend:x", ValueError, "Unknown allocator backend, options are native and cudaMallocAsync"),
        ("foo:1", ValueError, "Unrecognized key 'foo' in CUDA allocator config."),
        (",max_split_size_mb:30", ValueError, "Unrecognized key ',' in CUDA allocator config."),
        ("Max_split_size_mb:30", ValueError, "Unrecognized key 'Max_split_size_mb' in CUDA allocator config."),
    ],
)
def test_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        AllocatorSettings(text)
    assert message in str(caught.value)


def test_a_later_text_resets_four_options_and_keeps_the_others() -> None:
    settings = AllocatorSettings("max_split_size_mb:30,garbage_collection_threshold:0.5,expandable_segments:True")
    settings.parse("large_segment_size_mb:30")
    assert settings.max_split_size == UNLIMITED and settings.garbage_collection_threshold == 0.0
    assert settings.expandable_segments and settings.text == "large_segment_size_mb:30"


def test_items_before_a_bad_one_stay_applied() -> None:
    settings = AllocatorSettings()
    with pytest.raises(ValueError, match="Unrecognized key 'foo' in Accelerator allocator config"):
        settings.parse("max_split_size_mb:30,foo:1")
    assert settings.max_split_size == 30 * MIB and settings.text == "max_split_size_mb:30,foo:1"


@pytest.mark.parametrize("key", sorted(READERS))
def test_every_key_needs_a_value(key: str) -> None:
    with pytest.raises(RuntimeError, match="Index out of bounds in ConfigTokenizer"):
        AllocatorSettings(f"{key}:")


def test_the_snapshot_names_unlimited_minus_one() -> None:
    shown = AllocatorSettings("roundup_power2_divisions:[1:2,>:4]").as_snapshot()
    assert shown["max_split_size"] == shown["max_cached_size"] == -1
    assert shown["roundup_power2_divisions"] == {"1": 2, **{str(1 << power): 4 for power in range(1, 16)}}
