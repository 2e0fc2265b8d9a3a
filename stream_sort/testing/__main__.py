"""`python -m stream_sort.testing`: soak, replay."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from stream_sort.testing.simulation.failure import SimulationFailure
from stream_sort.testing.simulation.simulator import simulate, simulate_consumers
from stream_sort.testing.simulation.soak import Soaked, soak
from stream_sort.testing.simulation.variant import PRODUCTION, Variant

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 only if every invariant held."""
    options = _parser().parse_args(arguments)
    if options.command == "replay":
        return replay(options.seed, consumers=options.consumers)
    return _soak(options)


def replay(seed: int, variant: Variant = PRODUCTION, *, consumers: bool = False) -> int:
    """Print the trace of one seed; 0 only if every invariant held."""
    try:
        report = (simulate_consumers if consumers else simulate)(seed, variant)
    except SimulationFailure as failure:
        _print(str(failure))
        return 1
    _print("\n".join(report.trace.lines()))
    _print(f"seed {seed}: every invariant held")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m stream_sort.testing",
        description="Simulate stream_sort.",
        epilog="In a checkout, `python -m tests.simulation` searches every interleaving of small cases, and shows that "
        "known-bad variants are caught.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    soaking = commands.add_parser("soak", help="run many seeds on all cores until one fails")
    soaking.add_argument("--seeds", type=int, default=10_000, help="how many (default: %(default)s)")
    soaking.add_argument("--start", type=int, default=0, help="the first one (default: %(default)s)")
    soaking.add_argument("--jobs", type=int, default=0, help="processes (default: one a core)")
    replaying = commands.add_parser("replay", help="print the trace of one seed")
    replaying.add_argument("seed", type=int)
    for command in (soaking, replaying):
        command.add_argument("--consumers", action="store_true", help="with consumers, streams and retry queues")
    return parser


def _soak(options: argparse.Namespace) -> int:
    run = simulate_consumers if options.consumers else simulate
    done = soak(options.start, options.seeds, options.jobs, _progress, run)
    _print("\n" + "\n".join(f"{count:>10,} {what}" for what, count in sorted(done.met.items())))
    _print(f"{done.seeds:,} seeds in {done.seconds:.0f} s" + (", interrupted" if done.interrupted else ""))
    if done.failure:
        _print(str(done.failure))
    return 1 if done.failure or done.interrupted else 0


def _progress(done: Soaked) -> None:
    sys.stderr.write(f"\r{done.seeds:,} seeds, {done.rate:.0f} a second ")
    sys.stderr.flush()


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
