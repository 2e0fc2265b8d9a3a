"""The worlds of an exhaustive search: copied before each change, and told apart by their content."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.stores.memory.tables import MemoryQueue, MemoryTables
from stream_sort.testing.simulation.consumers import CONTROL

if TYPE_CHECKING:
    from stream_sort.testing.simulation.world import World


def copy_of(world: World) -> World:
    """Return the same state in tables of its own."""
    tables, control = world.tables, world.control
    queues = {
        name: MemoryQueue(dict(held.slots), list(held.firsts), dict(held.seen)) for name, held in tables.queues.items()
    }
    control = replace(control, checkpoints=dict(control.checkpoints), consumers=dict(control.consumers))
    twin = type(world)(MemoryTables(queues, dict(tables.cursors), {CONTROL: control}, dict(tables.withdrawn)))
    twin.now = world.now
    return twin


def describe(world: World) -> str:
    """Return the state of a world as text: equal for equal tables."""
    tables, control = world.tables, world.control
    queues = {
        name: (sorted(held.slots.items()), sorted(held.seen.items())) for name, held in sorted(tables.queues.items())
    }
    rows = [
        sorted(control.checkpoints.items()),
        sorted(control.consumers.items()),
        sorted((queue, sorted(kept.items())) for queue, kept in tables.withdrawn.items()),
    ]
    return repr((queues, sorted(tables.cursors.items()), rows))
