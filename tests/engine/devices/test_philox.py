"""CUDA's random numbers: the generator against its published vectors, the distributions against published values."""

from __future__ import annotations

import numpy as np
import pytest

from stridescope.engine.devices import philox, philox_kernels
from stridescope.engine.devices.cuda_generator import CudaGenerator
from stridescope.engine.devices.gpu_models import MODELS
from stridescope.engine.devices.simulated import SimulatedGPU

F4, F8, I8 = np.dtype("float32"), np.dtype("float64"), np.dtype("int64")
ONES = 0xFFFFFFFF


def one(counter: tuple[int, ...], key: tuple[int, int]) -> list[str]:
    words = philox.philox(tuple(np.array([word], np.uint32) for word in counter), key)  # type: ignore[arg-type]
    return [f"{int(word[0]):08x}" for word in words]


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((ONES,) * 4, (ONES, ONES), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_the_published_vectors(counter: tuple[int, ...], key: tuple[int, int], words: str) -> None:
    assert one(counter, key) == words.split()


def seeded(seed: int = 0, model: str = MODELS[0].name) -> CudaGenerator:
    generator = SimulatedGPU(model=model).generator
    generator.manual_seed(seed)
    return generator


def test_what_pytorch_prints_for_seed_0() -> None:
    assert np.round(seeded().uniform(4, F4), 4).tolist() == pytest.approx([0.3990, 0.5167, 0.0249, 0.9401])
    assert np.round(seeded().normal(4, F4), 4).tolist() == pytest.approx([-0.9247, -0.4253, -2.6438, 0.1452])


def test_each_draw_moves_the_offset_on_by_the_calls_of_a_thread() -> None:
    generator = seeded(model="Tesla T4")  # 40 processors of 1024 threads
    generator.uniform(1, F4)
    assert generator.offset == 4
    generator.uniform(40 * 1024 * 4, F4)
    assert generator.offset == 8
    generator.uniform(40 * 1024 * 4 + 1, F4)
    assert generator.offset == 16
    generator.uniform(40 * 1024 * 4, F8)  # a call gives two doubles only
    assert generator.offset == 24
    generator.uniform(0, F4)
    assert generator.offset == 24


def test_a_second_draw_goes_on_where_the_first_ended() -> None:
    generator = seeded(7)
    first, second = generator.uniform(5, F4), generator.uniform(5, F4)
    assert not np.array_equal(first, second)
    generator.manual_seed(7)
    assert np.array_equal(generator.uniform(5, F4), first) and np.array_equal(generator.uniform(5, F4), second)


def test_few_elements_do_not_depend_on_the_model_and_many_do() -> None:
    small, large = [seeded(1, model).uniform(5000, F4) for model in ("Tesla T4", "H200")]
    assert np.array_equal(small, large)
    small, large = [seeded(1, model).uniform(400_000, F4) for model in ("Tesla T4", "H200")]
    assert not np.array_equal(small, large)


def test_the_elements_of_one_thread_lie_a_launch_apart() -> None:
    machine = SimulatedGPU(model="Tesla T4").properties
    launch = philox.launch_for(100_000, 4, machine.multi_processor_count, machine.max_threads_per_multi_processor)
    assert launch == philox.Launch(40 * 1024, 1)
    values = philox.unit(3, 0, 100_000, launch, F4)
    words = philox.philox(tuple(np.array([w], np.uint32) for w in (0, 0, 5, 0)), (3, 0))
    expected = [float(np.float32(int(w[0])) * np.float32(2.0**-32) + np.float32(2.0**-33)) for w in words[:2]]
    assert values[[5, 5 + 40 * 1024]].tolist() == expected


@pytest.mark.parametrize("dtype", [F4, F8, np.dtype("float16")])
def test_uniform_stays_below_its_upper_bound(dtype: np.dtype[np.generic]) -> None:
    values = seeded(2).uniform(200_000, dtype, -1.0, 3.0)
    assert values.dtype == dtype and values.min() >= -1 and values.max() < 3
    assert float(values.mean(dtype=np.float64)) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("dtype", [F4, F8])
def test_normal_has_its_mean_and_deviation(dtype: np.dtype[np.generic]) -> None:
    values = seeded(3).normal(200_000, dtype, 2.0, 3.0)
    assert values.dtype == dtype
    assert (float(values.mean()), float(values.std())) == pytest.approx((2.0, 3.0), abs=0.03)


@pytest.mark.parametrize(("low", "high"), [(0, 10), (-5, 5), (0, 1 << 28), (-(1 << 62), 1 << 62)])
def test_integers_stay_in_their_range(low: int, high: int) -> None:
    values = seeded(4).integers(10_000, I8, low, high)
    assert low <= int(values.min()) < int(values.max()) < high


def test_bernoulli_and_exponential() -> None:
    assert float(seeded(5).bernoulli(100_000, F4, 0.25).mean()) == pytest.approx(0.25, abs=0.01)
    values = seeded(5).exponential(100_000, F4, 2.0)
    assert float(values.min()) > 0 and float(values.mean()) == pytest.approx(0.5, abs=0.01)


def test_the_state_goes_there_and_back() -> None:
    generator = seeded(123)
    generator.uniform(10, F4)
    state = generator.state()
    assert state == (123).to_bytes(8, "little") + (4).to_bytes(8, "little")
    values = generator.uniform(10, F4)
    generator.set_state(state)
    assert np.array_equal(generator.uniform(10, F4), values)
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        generator.set_state(b"123")


def test_negative_seeds_count_by_their_low_64_bits() -> None:
    generator = seeded(-1)
    assert generator.seed == (1 << 64) - 1


def test_dropout_gives_neighbours_the_words_of_one_call() -> None:
    words = philox_kernels.words_of_threads(1, 0, 3)
    kept = (philox._floats(words) < np.float32(0.5)).tolist()
    assert seeded(1).dropout_mask(12, 0.5, 4).tolist() == [flag for row in kept for flag in row]
    # Six elements are divided by two only: every thread takes the first half of its call.
    assert seeded(1).dropout_mask(6, 0.5, 4).tolist() == [flag for row in kept for flag in row[:2]]
    # Three are taken one by one: thread t has element t.
    assert seeded(1).dropout_mask(3, 0.5, 4).tolist() == [row[0] for row in kept]
    # Sixteen bytes hold eight halves, for which a thread draws two calls, and two doubles.
    halves = (philox._floats(philox_kernels.words_of_threads(1, 0, 2, 2)) < np.float32(0.5)).tolist()
    assert seeded(1).dropout_mask(16, 0.5, 2).tolist() == [flag for row in halves for flag in row]
    assert seeded(1).dropout_mask(6, 0.5, 8).tolist() == [flag for row in kept for flag in row[:2]]


def test_a_permutation_sorts_by_the_low_bits_of_its_keys() -> None:
    assert [philox_kernels.permutation_bits(n) for n in (1, 2, 10, 1000, 100_000)] == [3, 5, 9, 23, 36]
    drawn = seeded(5).integers(100, I8, -(1 << 31), (1 << 31) - 1)
    keys = drawn & ((1 << philox_kernels.permutation_bits(100)) - 1)
    generator = seeded(5)
    order = generator.permutation(100)
    assert len(set(keys.tolist())) == 100 and order.tolist() == np.argsort(keys, kind="stable").tolist()
    assert generator.offset == 4 + 100, "the keys, and what the shuffle of equal keys might need"
    for size in (1, 2, 40_000):
        assert sorted(seeded(9).permutation(size).tolist()) == list(range(size))


def test_equal_keys_are_shuffled_by_the_thread_at_their_beginning() -> None:
    keys, order = np.array([1, 7, 7, 7, 9]), np.array([10, 11, 12, 13, 14])
    words = [int(word) for word in philox_kernels.words_of_threads(3, 8, 2)[1]]
    expected = [11, 12, 13]
    for step, word in ((2, words[0]), (1, words[1])):
        there = word % (step + 1)
        expected[step], expected[there] = expected[there], expected[step]
    assert philox_kernels.shuffle_equal_keys(3, 8, keys, order).tolist() == [10, *expected, 14]


def test_probabilities_of_each_element_and_draws_with_replacement() -> None:
    shares = np.linspace(0, 1, 4001, dtype=np.float32)
    generator = seeded(6)
    kept = generator.bernoulli_each(shares)
    assert not kept[0] and kept[-1] and generator.offset == 12 and abs(float(kept.mean()) - 0.5) < 0.05
    found = generator.multinomial(np.array([[0.0, 3.0, 1.0, 0.0], [0.0, 0.0, 0.0, 2.0]], np.float32), 4000)
    assert generator.offset == 16 and set(found[0].tolist()) == {1, 2} and set(found[1].tolist()) == {3}
    assert abs(float((found[0] == 1).mean()) - 0.75) < 0.03


@pytest.mark.parametrize("dtype", [F4, F8])
def test_the_other_distributions(dtype: np.dtype[np.generic]) -> None:
    generator = seeded(8)
    assert float(np.median(generator.cauchy(50_000, dtype, 2.0, 1.0))) == pytest.approx(2.0, abs=0.05)
    tries = generator.geometric(50_000, dtype, 0.25)
    assert float(tries.min()) == 1 and float(tries.mean()) == pytest.approx(4.0, abs=0.1)
    assert float(np.log(generator.log_normal(50_000, dtype, 1.0, 0.5)).mean()) == pytest.approx(1.0, abs=0.02)
    whole = generator.any_value(1000, dtype, (1 << 24) + 1)
    assert whole.dtype == dtype and (whole == np.floor(whole)).all() and whole.max() <= 1 << 24
