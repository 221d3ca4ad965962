"""Numbers as people read them."""

from __future__ import annotations

import numpy as np
import pytest

from stridescope.app import values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(3), "3."), (np.float32(-0.0), "-0."), (np.float32(0.25), "0.25"), (np.float32(123.456), "123.5"),
        (np.float64(1e-9), "1e-9"), (np.float32(2e10), "2e10"), (np.float32("nan"), "nan"),
        (np.float32("-inf"), "-inf"),
        (np.int64(-12), "-12"), (np.int64(10**9), "1e+09"), (np.bool_(True), "True"), (np.complex64(1 + 2j), "1+2j"),
    ],
)  # fmt: skip
def test_elements(value: object, text: str) -> None:
    assert values.element_text(value) == text


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("torch.float32", "f32"),
        ("bfloat16", "bf16"),
        ("int64", "i64"),
        ("uint8", "u8"),
        ("bool", "bool"),
        ("complex64", "c64"),
    ],
)
def test_dtypes(name: str, short: str) -> None:
    assert values.short_dtype(name) == short
    assert values.numpy_dtype(name).itemsize > 0


def test_bfloat16_bytes_are_read() -> None:
    kept = values.elements_of(b"\x80\x3f\x00\x40", "bfloat16")
    assert kept is not None and kept.astype(float).tolist() == [1.0, 2.0]
    assert values.elements_of(None, "float32") is None


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 B"), (512, "512 B"), (1536, "1.50 KiB"), (20 << 20, "20.0 MiB"), (8 << 30, "8.00 GiB")]
)
def test_sizes(nbytes: int, text: str) -> None:
    assert values.size_text(nbytes) == text


def test_sizes_in_words() -> None:
    told = "A free block of 6291456 bytes is cut: 4194304 are handed out, 512 bytes stay at 0x7f3000000000."
    assert values.sizes_in_words(told) == (
        "A free block of 6.00 MiB is cut: 4.00 MiB are handed out, 512 bytes stay at 0x7f3000000000."
    )
    assert values.sizes_in_words("取得 20971520 字节的段。") == "取得 20.0 MiB 的段。"
