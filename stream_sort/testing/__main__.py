"""`python -m stream_sort.testing`: soak, replay, exhaustive, mutants."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from stream_sort.testing.simulation.cases import CASES, SLOW_CASES
from stream_sort.testing.simulation.consumer_mutants import CONSUMER_MUTANTS
from stream_sort.testing.simulation.consumer_simulator import simulate_consumers
from stream_sort.testing.simulation.exhaustive import Search
from stream_sort.testing.simulation.failure import SimulationFailure
from stream_sort.testing.simulation.hunt import hunt_by_search, hunt_by_seeds, hunt_consumers
from stream_sort.testing.simulation.mutants import MUTANTS
from stream_sort.testing.simulation.simulator import simulate
from stream_sort.testing.simulation.soak import Soaked, soak
from stream_sort.testing.simulation.variant import PRODUCTION, Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.testing.simulation.simulator import RunReport


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 only if every invariant held (for `mutants`: if every mutant was caught)."""
    options = _parser().parse_args(arguments)
    match options.command:
        case "soak":
            run = simulate_consumers if options.consumers else simulate
            return _soak(run, options.start, options.seeds, options.jobs)
        case "replay":
            run = simulate_consumers if options.consumers else simulate
            return _replay(run, options.seed, _variant(options.mutant))
        case "exhaustive":
            return _exhaustive(_variant(options.mutant), slow=options.slow)
    return _mutants()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stream_sort.testing", description="Simulate stream_sort.")
    commands = parser.add_subparsers(dest="command", required=True)
    soaking = commands.add_parser("soak", help="run many seeds on all cores until one fails")
    soaking.add_argument("--seeds", type=int, default=10_000, help="how many (default: %(default)s)")
    soaking.add_argument("--start", type=int, default=0, help="the first one (default: %(default)s)")
    soaking.add_argument("--jobs", type=int, default=0, help="processes (default: one a core)")
    replay = commands.add_parser("replay", help="print the trace of one seed")
    replay.add_argument("seed", type=int)
    search = commands.add_parser("exhaustive", help="search every interleaving of a few small cases")
    for command, mutants in ((replay, MUTANTS | CONSUMER_MUTANTS), (search, MUTANTS)):
        command.add_argument("--mutant", choices=sorted(mutants), help="run a known-bad variant instead")
    for command in (soaking, replay):
        command.add_argument("--consumers", action="store_true", help="with consumers, streams and retry queues")
    search.add_argument("--slow", action="store_true", help="also the cases that take minutes and gigabytes")
    commands.add_parser("mutants", help="show that every known-bad variant is caught")
    return parser


def _variant(mutant: str | None) -> Variant:
    return (MUTANTS | CONSUMER_MUTANTS)[mutant] if mutant else PRODUCTION


def _soak(run: Callable[[int], RunReport], start: int, seeds: int, jobs: int) -> int:
    done = soak(start, seeds, jobs, _progress, run)
    _say("\n" + "\n".join(f"{count:>10,} {what}" for what, count in sorted(done.met.items())))
    _say(f"{done.seeds:,} seeds in {done.seconds:.0f} s" + (", interrupted" if done.interrupted else ""))
    if done.failure:
        _say(str(done.failure))
    return 1 if done.failure or done.interrupted else 0


def _progress(done: Soaked) -> None:
    sys.stderr.write(f"\r{done.seeds:,} seeds, {done.rate:.0f} a second ")
    sys.stderr.flush()


def _replay(run: Callable[[int, Variant], RunReport], seed: int, variant: Variant) -> int:
    try:
        report = run(seed, variant)
    except SimulationFailure as failure:
        _say(str(failure))
        return 1
    _say("\n".join(report.trace.lines()))
    _say(f"seed {seed}: every invariant held")
    return 0


def _exhaustive(variant: Variant, *, slow: bool) -> int:
    for case in CASES + SLOW_CASES if slow else CASES:
        began = time.monotonic()
        try:
            found = Search(case, variant).run()
        except SimulationFailure as failure:
            _say(str(failure))
            return 1
        _say(f"{case.name:<32} {found.states:>12,} states {found.executions:>24,} executions {_since(began)}")
    return 0


def _mutants() -> int:
    missed = 0
    for name, mutant in (MUTANTS | CONSUMER_MUTANTS).items():
        began = time.monotonic()
        hunts = (hunt_consumers,) if name in CONSUMER_MUTANTS else (hunt_by_seeds, hunt_by_search)
        caught = [failure for failure in (hunt(mutant) for hunt in hunts) if failure]
        told = "; ".join(f"{failure.where} ({failure.number})" for failure in caught)
        _say(f"{name:<24} {mutant.summary:<52} {told or 'NOT CAUGHT'} {_since(began)}")
        missed += not caught
    return 1 if missed else 0


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
