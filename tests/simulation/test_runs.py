"""Suspended at each call or run again from its start: an operation reaches the same calls, and is dropped cleanly."""

from __future__ import annotations

import re
import weakref
from typing import TYPE_CHECKING

import pytest

from stream_sort.sorter import Options
from stream_sort.testing.simulation import process
from stream_sort.testing.simulation.calls import Call, Recorder
from stream_sort.testing.simulation.operations import Attempt, Operation
from stream_sort.testing.simulation.process import Ended, Program, ReplayedRun, SimulatedProcess, SuspendedRun
from stream_sort.testing.simulation.simulator import simulate, simulate_consumers
from stream_sort.testing.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.testing.simulation.simulator import RunReport

RUN_NAME = re.compile(r"\brun\d+")


def lines_of(simulated: Callable[[int], RunReport], seed: int) -> list[str]:
    return [RUN_NAME.sub("run", line) for line in simulated(seed).trace.lines()]


@pytest.mark.parametrize("simulated", [simulate, simulate_consumers])
def test_without_greenlet_every_seed_goes_the_same_way(
    simulated: Callable[[int], RunReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = range(60)
    suspended = [lines_of(simulated, seed) for seed in seeds]
    monkeypatch.setattr(process, "greenlet", None)
    assert [lines_of(simulated, seed) for seed in seeds] == suspended


@pytest.mark.parametrize("kind", [ReplayedRun, SuspendedRun])
def test_a_run_goes_from_call_to_call_to_its_end(kind: type[ReplayedRun | SuspendedRun]) -> None:
    history: list[object] = []
    run = kind(
        lambda recorder: recorder.ask(Call("items", "first", ())) + recorder.ask(Call("items", "second", ())),
        lambda: Recorder(history, float),
    )
    assert run.go_on() == Call("items", "first", ())
    history.append(1)
    assert run.go_on() == Call("items", "second", ())
    history.append(2)
    assert run.go_on() == Ended(3)


def test_a_run_that_is_dropped_reaches_no_call_any_more() -> None:
    history: list[object] = []
    reached: list[str] = []

    def work(recorder: Recorder) -> None:
        try:
            recorder.ask(Call("items", "first", ()))
        finally:
            reached.append("unwound")
            try:
                recorder.ask(Call("items", "second", ()))
            finally:
                reached.append("to its end")

    run = SuspendedRun(work, lambda: Recorder(history, float))
    assert run.go_on() == Call("items", "first", ())
    del run
    assert reached == ["unwound", "to its end"]


def test_a_process_that_is_killed_in_the_middle_of_a_call_leaves_nothing_in_memory() -> None:
    world = World()
    process = SimulatedProcess("writer", Program(Options(in_flight=1), ("q",)), world.clock)
    process.begin(Attempt(1, Operation("put", messages=({"queue": "q", "seq": 0},))))
    assert process.pending is not None
    suspended = weakref.ref(process.run)
    del process
    assert suspended() is None
