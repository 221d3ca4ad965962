"""The profiler: what it counts, how it sums, what it writes."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import pathlib
import subprocess
import sys

import pytest

import stridescope.engine.torch as torch
from stridescope.engine.torch.autograd.profiler_util import EventList, FunctionEvent
from stridescope.engine.torch.profiler import ProfilerAction, profile, record_function, schedule

# Recorded from PyTorch 2.13, which was given the same events.
TABLES = pathlib.Path(__file__).with_name("profile_tables.txt").read_text(encoding="utf-8")
ROWS = (
    ("my step", 0, 2500.5, None),
    ("aten::linear", 10, 510.25, 0),
    ("aten::addmm", 20, 500, 1),
    ("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 600, 1600.125, 0),
    ("aten::addmm", 700, 1000, 3),
)
PLACE = "/very/long/path/to/some/file/of/the/script/that/is/run/here/train.py({}): f"


def made(*, shapes: bool = False, stacks: bool = False, memory: bool = False, flops: bool = False) -> EventList:
    """The events that the tables were recorded of."""
    events: list[FunctionEvent] = []
    for number, (name, start, end, outer) in enumerate(ROWS):
        event = FunctionEvent(
            number, name, 1, start, end, input_shapes=[[2, 3], []] if shapes else [], overload_name="",
            stack=[PLACE.format(number), "main.py(3): <module>"] if stacks else [],
            cpu_memory_usage=number * 3_000_000 - 1500, flops=number * 1_500_000 if flops else 0,
        )  # fmt: skip
        events.append(event)
        if outer is not None:
            event.set_cpu_parent(events[outer])
            events[outer].append_cpu_child(event)
    return EventList(events, profile_memory=memory, with_flops=flops)


def test_tables_and_sums_are_pytorchs() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for events in (made(), made(shapes=True, flops=True), made(stacks=True), made(memory=True)):
            print(events.table())
            print(events.key_averages().table(sort_by="self_cpu_time_total", row_limit=2))
        shaped = made(shapes=True).key_averages(group_by_input_shapes=True)
        print(shaped.table(sort_by="count", header="HEAD", time_unit="ms", max_name_column_width=20))
        print(made(stacks=True).key_averages(group_by_stack_n=1).table(max_src_column_width=30))
        print(made().table(top_level_events_only=True, row_limit=-1))
        total, linear = made().total_average(), made().key_averages()[1]
        print(total, linear, made()[1], repr(EventList([]).table()), str(made()) == made().table())
    assert out.getvalue() == TABLES


def counts(prof: profile) -> dict[str, int]:
    return {event.key: event.count for event in prof.key_averages()}


def test_every_op_node_and_label_is_counted() -> None:
    layer, x = torch.nn.Linear(4, 2), torch.arange(4.0)
    with profile() as prof:
        with record_function("my step"):
            layer(torch.ones(3, 4)).sum().backward()
        total = torch.zeros(())
        for i in range(4):
            total = total + x[i] * x[i]
    seen = counts(prof)
    wanted = {"my step": 1, "aten::addmm": 1, "AddmmBackward0": 1, "torch::autograd::AccumulateGrad": 2,
              "aten::select": 8, "aten::mul": 4, "aten::add": 4}  # fmt: skip
    assert {name: seen[name] for name in wanted} == wanted
    assert seen["autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"] == 2


def test_calls_stand_in_the_calls_that_made_them() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    with profile(record_shapes=True) as prof:
        torch.softmax(x, 1).sum().backward()
    by_name = {event.name: event for event in prof.events()}
    assert by_name["aten::_softmax"].cpu_parent is by_name["aten::softmax"]
    assert by_name["aten::_softmax"].input_shapes == [[2, 3], [], []]
    node = by_name["SoftmaxBackward0"]
    assert node.cpu_parent.name == "autograd::engine::evaluate_function: SoftmaxBackward0"
    assert node.sequence_nr == by_name["aten::_softmax"].sequence_nr >= 0
    for event in prof.events():
        assert event.cpu_time_total >= event.self_cpu_time_total >= 0


def test_memory_is_counted_where_it_is_taken_and_freed() -> None:
    x = torch.ones(1000)
    with profile(profile_memory=True) as prof:
        with record_function("kept"):
            y = x + 1
        with record_function("dropped"):
            x.mul(2)
        del y
    memory = {event.name: event.cpu_memory_usage for event in prof.events()}
    assert (memory["kept"], memory["dropped"], memory["aten::mul"]) == (4000, 0, 4000)
    assert memory["[memory]"] == -4000  # no call ran when y was freed


def test_flops_of_products() -> None:
    with profile(with_flops=True) as prof:
        torch.ones(4, 3) @ torch.ones(3, 5)
        torch.nn.functional.conv2d(torch.ones(1, 2, 5, 5), torch.ones(4, 2, 3, 3))
    flops = {event.key: event.flops for event in prof.key_averages()}
    assert flops["aten::mm"] == 2 * 4 * 3 * 5
    assert flops["aten::conv2d"] == 2 * (4 * 3 * 3) * (2 * 3 * 3)


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events at the end of each cycle")
def test_a_schedule_measures_the_steps_it_names() -> None:
    layer = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    ready: list[tuple[int, dict[str, int]]] = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda p: ready.append((p.step_num, counts(p)))) as prof:
        for _ in range(9):
            layer(torch.ones(2, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    assert [step for step, _ in ready] == [4, 8]
    for _, seen in ready:
        assert seen["ProfilerStep*"] == seen["Optimizer.step#SGD.step"] == seen["AddmmBackward0"] == 2


def test_the_actions_of_a_schedule() -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    none, warmup, record, save = (ProfilerAction(n) for n in range(4))
    assert [plan(step) for step in range(11)] == [none, *(none, warmup, record, save) * 2, none, none]
    with pytest.raises(AssertionError, match=r"^Invalid profiler schedule arguments. Got wait=0 \(need >= 0\), "):
        schedule(wait=0, warmup=0, active=0)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_trace_for_chrome(tmp_path: pathlib.Path, name: str) -> None:
    with profile() as prof:
        with record_function("label"):
            torch.ones(2) + 1
        prof.add_metadata("who", "me")
    prof.export_chrome_trace(str(tmp_path / name))
    written = (tmp_path / name).read_bytes()
    trace = json.loads(gzip.decompress(written) if name.endswith(".gz") else written)
    assert [event["name"] for event in trace["traceEvents"]] == ["label", "aten::ones", "aten::add"]
    outer, _, inner = trace["traceEvents"]
    assert outer["ts"] <= inner["ts"] <= inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert (outer["cat"], inner["cat"], trace["who"]) == ("user_annotation", "cpu_op", "me")


def test_stacks_name_the_lines_of_the_script(tmp_path: pathlib.Path) -> None:
    with profile(with_stack=True) as prof:
        torch.ones(2)
    (event,) = prof.events()
    assert event.stack[0].startswith(f"{__file__}(") and event.stack[0].endswith(
        ": test_stacks_name_the_lines_of_the_script"
    )
    prof.export_stacks(str(tmp_path / "stacks"))
    assert event.stack[0].replace(" ", "_") in (tmp_path / "stacks").read_text()
    with pytest.raises(ValueError, match="^metric should be one of: "):
        prof.export_stacks(str(tmp_path / "stacks"), "nonsense")


def test_what_is_asked_too_early_or_wrongly() -> None:
    prof = profile()
    with pytest.raises(AssertionError, match="^Profiler must be initialized before getting key averages$"):
        prof.key_averages()
    with pytest.raises(AssertionError, match="^No valid profiler activities found$"):
        profile(activities=[])
    with prof:
        torch.ones(1)
    with pytest.raises(AttributeError, match="^'FunctionEventAvg' object has no attribute 'nonsense'$"):
        prof.key_averages().table(sort_by="nonsense")


def test_nothing_is_noted_after_the_end_and_an_error_ends_its_call() -> None:
    with pytest.raises(RuntimeError, match="size of tensor"), profile() as prof:
        torch.ones(2) + torch.ones(3)
    torch.ones(1)
    assert counts(prof) == {"aten::ones": 2, "aten::add": 1}


def test_a_profiler_within_a_profiler_takes_over() -> None:
    with profile() as outer:
        torch.ones(1)
        with profile() as inner:
            torch.zeros(1)
        torch.ones(1)
    assert (counts(outer), counts(inner)) == ({"aten::ones": 2}, {"aten::zeros": 1})


def test_kernels_of_the_simulated_gpu(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "from torch.profiler import profile\n"
        "x = torch.ones(512, 512, device='cuda')\n"
        "with profile(profile_memory=True) as prof:\n"
        "    y = x @ x\n"
        "event = {e.key: e for e in prof.key_averages()}['aten::mm']\n"
        "print(event.self_device_time_total > 0, event.device_memory_usage, event.cpu_memory_usage)\n"
        "print(prof.key_averages().table(sort_by='cuda_time_total', row_limit=1))\n"
    )
    command = [sys.executable, "-P", "-m", "stridescope.app.cli", "run", "--device", "sim", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    first, *table = done.stdout.splitlines()
    assert first == "True 1048576 0"
    assert "Self CUDA   Self CUDA %    CUDA total  CUDA time avg" in table[1]
    assert "CUDA Mem  Self CUDA Mem" in table[1]
    assert done.stderr == ""
