"""CUDA graphs: captured once, launched again, in a pool of their own."""

from __future__ import annotations

from typing import Any

import pytest

MIB = 1 << 20


def test_a_replay_computes_again_on_the_same_memory(torch: Any) -> None:
    x, total = torch.zeros(4, device="cuda"), torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2 + 1
        total.add_(y)
    assert total.tolist() == [0, 0, 0, 0], "a capture runs nothing"
    where = y.data_ptr()
    x.copy_(torch.tensor([1.0, 2, 3, 4]))
    graph.replay()
    graph.replay()
    assert y.tolist() == [3, 5, 7, 9] and total.tolist() == [6, 10, 14, 18] and y.data_ptr() == where


def test_a_training_step(torch: Any) -> None:
    w = torch.tensor([1.0, -2.0], device="cuda", requires_grad=True)
    x = torch.zeros(2, device="cuda")

    def step() -> None:
        (w * x).sum().backward()
        with torch.no_grad():
            w.sub_(w.grad * 0.5)
            w.grad.zero_()

    step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for values in ([1.0, 2.0], [3.0, 4.0]):
        x.copy_(torch.tensor(values))
        graph.replay()
    assert w.tolist() == [1 - 0.5 - 1.5, -2 - 1 - 2]


def test_its_pool_lives_until_the_graph_is_reset_and_the_cache_emptied(torch: Any) -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for size in (512, MIB, 3 * MIB):
            kept = torch.ones(size, dtype=torch.uint8, device="cuda")
    pools = {segment["segment_pool_id"] for segment in torch.cuda.memory_snapshot()}
    assert pools == {graph.pool()} and torch.cuda.memory_allocated() == 3 * MIB
    del kept
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 22 * MIB, "a small segment and a large one"
    graph.reset()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0


def test_graphs_share_a_pool(torch: Any) -> None:
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        a = torch.ones(1000, device="cuda")
    with torch.cuda.graph(second, pool=first.pool()):
        b = torch.ones(1000, device="cuda")
    assert second.pool() == first.pool() and len(torch.cuda.memory_snapshot()) == 1
    assert a.is_cuda and b.is_cuda


def test_during_a_capture_no_event_is_asked_and_frees_wait(torch: Any) -> None:
    side = torch.cuda.Stream()
    x = torch.ones(1000, device="cuda")
    x.record_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        del x
        assert torch.cuda.memory_stats()["active.all.current"] == 1
        y = torch.ones(1000, device="cuda")
        assert torch.cuda.memory_stats()["active.all.current"] == 2
    assert not torch.cuda.is_current_stream_capturing()
    z = torch.ones(1000, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_stats()["active.all.current"] == 2 and y.is_cuda and z.is_cuda


def test_what_cannot_be_captured_says_so(torch: Any) -> None:
    graph, x = torch.cuda.CUDAGraph(), torch.ones(3, device="cuda")
    out = torch.empty(3, device="cuda")
    with pytest.raises(RuntimeError, match="operation not permitted when stream is capturing"), torch.cuda.graph(graph):
        x.cpu()
    with pytest.raises(RuntimeError, match="with out= cannot be captured"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.mul(x, 2, out=out)
    assert torch.cuda.memory_stats()["num_alloc_retries"] == 0 and (x + 1).tolist() == [2, 2, 2]


def test_the_order_of_calls(torch: Any) -> None:
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="Called CUDAGraph::replay without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="without a preceding"):
        graph.pool()
    with pytest.raises(RuntimeError, match="without a preceding"):
        graph.capture_end()
    with torch.cuda.graph(graph):
        pass
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        graph.capture_begin()
