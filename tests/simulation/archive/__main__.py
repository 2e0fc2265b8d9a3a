"""`python -m tests.simulation.archive lossy 17`: run one seed and print all that happened in it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from stream_sort.testing.simulation.failure import SimulationFailure
from tests.simulation.archive.modes import MODES
from tests.simulation.archive.mutants import MUTANTS, PRODUCTION
from tests.simulation.archive.simulator import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """0 only if everything held."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.archive", description="Simulate archive runs.")
    parser.add_argument(
        "mode", choices=MODES, help="; ".join(f"{mode.name}: {mode.summary}" for mode in MODES.values())
    )
    parser.add_argument("seed", type=int)
    parser.add_argument("--mutant", choices=MUTANTS, help="run a known-bad variant instead")
    given = parser.parse_args(arguments)
    try:
        report = simulate(given.mode, given.seed, MUTANTS.get(given.mutant, PRODUCTION))
    except SimulationFailure as failure:
        print(failure)
        return 1
    print(*report.trace.lines(), "everything held", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
