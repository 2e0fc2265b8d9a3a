"""The simulator for your own handler: crashes, repeats, zombies and lost wakes, from a seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.consume.handler import check_handler
from stream_sort.errors import InvalidInput, shown
from stream_sort.testing.simulation.failure import InvariantBroken, SimulationFailure
from stream_sort.testing.simulation.simulator import simulate_consumers

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.batch import Batch
    from stream_sort.testing.simulation.simulator import RunReport


@dataclass(slots=True)
class Simulated:
    """The count of seeds that were run, and how often each thing happened in them: batches, kills, lost records."""

    seeds: int = 0
    met: Counter[str] = field(default_factory=Counter)


def simulate(  # noqa: PLR0913  # each is a keyword with a default
    handler: Callable[[Batch], Any],
    *,
    seeds: int = 500,
    start: int = 0,
    setup: Callable[[], Any] | None = None,
    fields: Callable[[str, int], dict[str, Any]] | None = None,
    check: Callable[[dict[tuple[str, str], list[int]]], Any] | None = None,
) -> Simulated:
    """Run a handler under everything that can go wrong; SimulationFailure, with a trace, where an invariant breaks.

    The same if no message got through in any seed: it then names the handler's first error.

    `setup()` is called before each seed, to start with a clean world of yours. `fields(queue, seq)` gives messages
    the fields your handler needs. `check(given)` is called after each seed with what the handler was given: for each
    (consumer, queue) the seqs in the order they came, repeats included; it may raise AssertionError.
    """
    check_handler(handler)
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise InvalidInput(f"seeds is {shown(seeds)}; it must be an int of at least 1")
    done = Simulated()
    first: RunReport | None = None
    for seed in range(start, start + seeds):
        if setup is not None:
            setup()
        report = simulate_consumers(seed, handler=handler, fields=fields, check=check)
        first = first or (report if report.first_error else None)
        done.met.update(report.met)
        done.seeds += 1
    if first is not None and not done.met["messages done"]:
        raise _nothing_done(first, done)
    return done


def _nothing_done(first: RunReport, done: Simulated) -> SimulationFailure:
    error = first.first_error
    problem = f"no message got through in {done.met['batches']} calls; the first error: {type(error).__name__}: {error}"
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        problem += (
            ". The messages of a simulation have no more than 'queue', 'seq' and 'body'; give them what your handler "
            f"needs: simulate(handler, fields=lambda queue, seq: {{{error.args[0]!r}: ...}})"
        )
    command = f"simulate(handler, start={first.seed}, seeds=1)"
    broken = InvariantBroken("your handler", problem)
    return SimulationFailure(f"seed {first.seed}", broken, first.trace.lines(), command)
