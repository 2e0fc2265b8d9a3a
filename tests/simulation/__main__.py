"""`python -m tests.simulation`: exhaustive, mutants, replay; what only the tests of this project search."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from stream_sort.testing.__main__ import replay
from stream_sort.testing.simulation.failure import SimulationFailure
from stream_sort.testing.simulation.variant import PRODUCTION
from tests.simulation.hunt import hunt_by_search, hunt_by_seeds
from tests.simulation.mutants import MUTANTS
from tests.simulation.search.cases import CASES, SLOW_CASES
from tests.simulation.search.exhaustive import Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.testing.simulation.variant import Variant


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 only if every invariant held (for `mutants`: if every mutant was caught)."""
    options = _parser().parse_args(arguments)
    if options.command == "mutants":
        return _mutants()
    variant = MUTANTS[options.mutant] if options.mutant else PRODUCTION
    if options.command == "replay":
        return replay(options.seed, variant, consumers=options.consumers)
    return _exhaustive(variant, slow=options.slow)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description="Search every interleaving.")
    commands = parser.add_subparsers(dest="command", required=True)
    replaying = commands.add_parser("replay", help="print the trace of one seed of a known-bad variant")
    replaying.add_argument("seed", type=int)
    replaying.add_argument("--consumers", action="store_true", help="with consumers, streams and retry queues")
    search = commands.add_parser("exhaustive", help="search every interleaving of a few small cases")
    search.add_argument("--slow", action="store_true", help="also the cases that take minutes and gigabytes")
    for command in (replaying, search):
        command.add_argument("--mutant", choices=sorted(MUTANTS), help="run a known-bad variant instead")
    commands.add_parser("mutants", help="show that every known-bad variant is caught")
    return parser


def _exhaustive(variant: Variant, *, slow: bool) -> int:
    for case in CASES + SLOW_CASES if slow else CASES:
        began = time.monotonic()
        try:
            found = Search(case, variant).run()
        except SimulationFailure as failure:
            print(failure)
            return 1
        print(f"{case.name:<32} {found.states:>12,} states {found.executions:>24,} executions {_since(began)}")
    return 0


def _mutants() -> int:
    missed = 0
    for name, mutant in MUTANTS.items():
        began = time.monotonic()
        caught = [failure for failure in (hunt_by_seeds(mutant), hunt_by_search(mutant)) if failure]
        where = "; ".join(f"{failure.where} ({failure.number})" for failure in caught)
        print(f"{name:<24} {mutant.summary:<52} {where or 'NOT CAUGHT'} {_since(began)}")
        missed += not caught
    return 1 if missed else 0


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


if __name__ == "__main__":
    sys.exit(main())
