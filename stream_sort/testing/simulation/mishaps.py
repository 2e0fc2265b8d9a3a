"""What happens to the tables from outside: retention trims them, an operator loses a cursor row."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from stream_sort.testing.simulation.bench import Bench
    from stream_sort.testing.simulation.process import SimulatedProcess


def trim_a_queue(bench: Bench, rng: Random) -> None:
    """Delete some released messages of a queue, never the one at the position, and no tombstones."""
    rows = sorted(bench.world.tables.cursors)
    if not rows:
        return
    queue = rng.choice(rows)
    position = bench.world.tables.cursors[queue].position
    slots = bench.world.tables.queue(queue).slots
    released = sorted(seq for seq, item in slots.items() if seq < position and not item.is_tombstone)
    seqs = released[: rng.choice((1, len(released)))]
    if seqs:
        bench.met["trimmed"] += len(seqs)
        bench.world.trim(queue, seqs)
        bench.oracle.trim(queue, seqs)
        bench.trace.add("outside", f"trims {queue!r} {seqs}")


def lose_a_cursor(bench: Bench, processes: list[SimulatedProcess], rng: Random) -> None:
    """Delete the row of a queue that holds proof of it, unless somebody is just about to make a row for it."""
    rows = [queue for queue in sorted(bench.world.tables.cursors) if bench.world.has_proof(queue)]
    rows = [queue for queue in rows if not any(_makes_row(process, queue) for process in processes)]
    if not rows:
        return
    queue = rng.choice(rows)
    bench.met["cursors lost"] += 1
    bench.world.lose_cursor(queue)
    bench.oracle.lost.add(queue)
    bench.trace.add("outside", f"loses the cursor row of {queue!r}")


def _makes_row(process: SimulatedProcess, queue: str) -> bool:
    """Whether a row that is absent already may still be created by a call that checked before it was lost."""
    if process.flight is None or process.attempt is None:
        return False
    operation = process.attempt.operation
    creating = process.flight.call.key == "cursors.create" and process.flight.call.queue == queue
    return creating or (operation.name in {"open", "set_policy"} and operation.queue == queue)
