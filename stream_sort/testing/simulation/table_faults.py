"""Faults from outside: retention deletes from the tables, an operator loses a cursor row."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from stream_sort.testing.simulation.harness import Harness
    from stream_sort.testing.simulation.process import SimulatedProcess


def trim_a_queue(harness: Harness, rng: Random) -> None:
    """Delete some released messages of a queue, never the one at the position, and no tombstones."""
    rows = sorted(harness.world.tables.cursors)
    if not rows:
        return
    queue = rng.choice(rows)
    position = harness.world.tables.cursors[queue].position
    slots = harness.world.tables.queue(queue).slots
    released = sorted(seq for seq, item in slots.items() if seq < position and not item.is_tombstone)
    seqs = released[: rng.choice((1, len(released)))]
    if seqs:
        harness.met["trimmed"] += len(seqs)
        harness.world.trim(queue, seqs)
        harness.oracle.trim(queue, seqs)
        harness.trace.add("outside", f"trims {queue!r} {seqs}")


def lose_a_cursor(harness: Harness, processes: list[SimulatedProcess], rng: Random) -> None:
    """Delete the row of a queue that holds proof of it, unless somebody is just about to make a row for it."""
    rows = [queue for queue in sorted(harness.world.tables.cursors) if harness.world.has_proof(queue)]
    rows = [queue for queue in rows if not any(_makes_row(process, queue) for process in processes)]
    if not rows:
        return
    queue = rng.choice(rows)
    harness.met["cursors lost"] += 1
    harness.world.lose_cursor(queue)
    harness.oracle.lost.add(queue)
    harness.trace.add("outside", f"loses the cursor row of {queue!r}")


def _makes_row(process: SimulatedProcess, queue: str) -> bool:
    """Return True if a row that is absent already may still be created by a call that checked before it was lost."""
    if process.pending is None or process.attempt is None:
        return False
    operation = process.attempt.operation
    creating = process.pending.call.key == "cursors.create" and process.pending.call.queue == queue
    return creating or (operation.name in {"open", "set_policy"} and operation.queue == queue)
