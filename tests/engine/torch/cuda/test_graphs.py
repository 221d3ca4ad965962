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
    x, out = torch.ones(3, device="cuda"), torch.empty(3, device="cuda")
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


@pytest.mark.parametrize(
    "ask",
    [
        lambda torch, y: y.sum().item(),
        lambda torch, y: y.cpu(),
        lambda torch, y: y.tolist(),
        lambda torch, y: bool(y.any()),
        lambda torch, y: torch.nonzero(y),
        lambda torch, y: y.copy_(torch.ones(4)),
        lambda torch, y: torch.cuda.synchronize(),
        lambda torch, y: torch.cuda.current_stream().synchronize(),
        lambda torch, y: torch.cuda.current_stream().query(),
    ],
)
def test_what_a_capture_cannot_hold_spoils_it(torch: Any, ask: Any) -> None:
    x, graph = torch.zeros(4, device="cuda"), torch.cuda.CUDAGraph()
    spoiled = "operation failed due to a previous error during capture"
    with pytest.raises(torch.AcceleratorError, match=spoiled) as end, torch.cuda.graph(graph):
        ask(torch, x + 1)
    first = end.value.__context__
    assert isinstance(first, torch.AcceleratorError)
    assert str(first).startswith("CUDA error: operation not permitted when stream is capturing\nSearch for `cuda")
    assert torch.cuda.current_stream() == torch.cuda.default_stream() and not torch.cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()


def test_a_capture_needs_a_stream_of_its_own_and_a_known_mode(torch: Any) -> None:
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="Unknown capture error mode"):
        graph.capture_begin(capture_error_mode="strict")


def test_a_pinned_copy_that_does_not_block_can_be_captured(torch: Any) -> None:
    host, x, graph = torch.ones(4, pin_memory=True), torch.zeros(4, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(host, non_blocking=True)
    host.fill_(5)
    graph.replay()
    assert x.tolist() == [5, 5, 5, 5]


def test_what_a_graph_holds_can_be_written_out(torch: Any, tmp_path: Any) -> None:
    x, graph = torch.zeros(4, device="cuda"), torch.cuda.CUDAGraph(keep_graph=True)
    graph.enable_debug_mode()
    with torch.cuda.graph(graph):
        (x + 1).relu()
    graph.instantiate()
    graph.debug_dump(str(tmp_path / "graph.dot"))
    assert (tmp_path / "graph.dot").read_text().split('"')[3::4][:2] == ["add", "relu"]
    with pytest.raises(NotImplementedError, match=r"raw_cuda_graph is not in Stridescope yet"):
        graph.raw_cuda_graph()
