"""What happens to an archive from outside: files get lost, one is exchanged, a copy ends early, a watermark is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from stream_sort.model.message import KeyNames
from stream_sort.replay.origins.archive.manifest import DATA, MANIFEST, PLANS, segment_name
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.ranges import Range
from stream_sort.replay.slots import SlotDecoder
from tests.simulation.archive.tables import wire_of
from tests.simulation.archive.witnesses import contents, manifests, plans
from tests.simulation.archive.world import QUEUE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from stream_sort.replay.origins.archive.plan import SegmentPlan
    from tests.simulation.archive.world import World

T = TypeVar("T")


def lose(world: World, names: Iterable[str]) -> None:
    """Delete some files, those of them that are there."""
    gone = [name for name in names if world.files.contents.pop(name, None) is not None]
    if gone:
        world.losses += 1
        world.met["files lost"] += len(gone)
        world.trace.add("mishap", f"loses {' '.join(name.rpartition('q-q/')[2] for name in gone)}")


def lose_all_plans(world: World, rng: Random) -> None:
    """Plans and marks are gone, the segments are left."""
    del rng
    lose(world, [name for name in world.names if PLANS in name])


def lose_a_plan(world: World, rng: Random) -> None:
    """A plan and its mark are gone."""
    for plan in _one_of(plans(world), rng):
        lose(world, [plan.name, plan.mark])


def lose_the_last_plan(world: World, rng: Random) -> None:
    """As a copy that is a little old."""
    del rng
    for plan in plans(world)[-1:]:
        lose(world, [plan.name, plan.mark])


def lose_a_mark(world: World, rng: Random) -> None:
    """A plan is there, and nobody says that it is finished."""
    lose(world, _one_of([name for name in world.names if name.endswith(".done")], rng))


def lose_a_segment(world: World, rng: Random) -> None:
    """A manifest and its segment are gone."""
    for manifest in _one_of(manifests(world), rng):
        lose(world, [manifest.name, manifest.data_name])


def lose_some_files(world: World, rng: Random) -> None:
    """Up to four files, whichever."""
    lose(world, rng.sample(world.names, min(len(world.names), rng.randint(1, 4))))


def lose_the_watermark(world: World, rng: Random) -> None:
    """As a control table that was made anew."""
    del rng
    if world.mark is not None:
        world.marks.lose(QUEUE)
        world.losses += 1
        world.is_forgotten = True
        world.met["watermarks lost"] += 1
        world.trace.add("mishap", "loses the watermark")


def set_the_watermark_back(world: World, rng: Random) -> None:
    """As a control table that was restored to an earlier time."""
    for mark in _one_of(world.marks.history, rng):
        world.marks.put_back(QUEUE, mark)
        world.losses += 1
        world.met["watermarks set back"] += 1
        world.trace.add("mishap", f"sets the watermark back to {mark}")


def copy_in_part(world: World, rng: Random) -> None:
    """The archive is a copy at another address, for which there is no watermark; names after some one are missing."""
    lose(world, world.names[rng.randint(1, len(world.names)) :])
    lose_the_watermark(world, rng)


def lose_whatever(world: World, rng: Random) -> None:
    """Several files, each perhaps with its segment, and perhaps the watermark."""
    for name in rng.choices(world.names, k=rng.randint(1, 4)):
        also = [name.removesuffix(MANIFEST) + DATA] if name.endswith(MANIFEST) and rng.random() < 0.5 else []
        lose(world, [name, *also])
    if rng.random() < 0.3:
        lose_the_watermark(world, rng)


def lose_what_can_be_mended(world: World, rng: Random) -> None:
    """Marks; plans whose segments are all there; a segment of a plan of which nothing was trimmed."""
    kinds = [lose_a_mark, _lose_a_plan_with_its_segments, _copy_without_plans, _lose_a_segment_of_the_table]
    rng.choice(kinds)(world, rng)


def exchange_a_segment(world: World, rng: Random) -> None:
    """Another one takes the place of a segment: it ends elsewhere, or holds another table's messages, or both."""
    found = manifests(world)
    # Half of the time the last one: new plans begin where it ends.
    for old in _one_of([*found, *found[-1:] * len(found)], rng):
        held = Range(QUEUE, old.after, rng.randint(old.after + 1, min(world.cursor.position, old.through + 3)))
        items = [world.released[seq] for seq in range(held.after + 1, held.through + 1)]
        if held == old.range or rng.random() < 0.5:
            items = [replace(item, document={**item.document, "value": -1}) for item in items]
        lose(world, [old.name, old.data_name])
        write_segment(world.storage, held, [SlotDecoder(KeyNames()).batch([wire_of(QUEUE, item) for item in items])])
        world.met["segments exchanged"] += 1
        world.trace.add("mishap", f"puts one in its place that ends at seq {held.through}")


def _lose_a_plan_with_its_segments(world: World, rng: Random) -> None:
    """The watermark still says that they were archived."""
    reached = -1 if world.mark is None else world.mark.watermark
    for plan in _one_of([plan for plan in _whole_plans(world) if plan.through <= reached], rng):
        lose(world, [plan.name, plan.mark])


def _copy_without_plans(world: World, rng: Random) -> None:
    """A copy at another address has all segments, and not all plans."""
    whole = _whole_plans(world)
    if whole == plans(world):
        lose(world, [name for plan in rng.sample(whole, rng.randint(0, len(whole))) for name in (plan.name, plan.mark)])
        lose_the_watermark(world, rng)


def _whole_plans(world: World) -> list[SegmentPlan]:
    """The plans that have all their segments."""
    held = contents(world)
    return [plan for plan in plans(world) if all(seq in held for seq in range(plan.first, plan.through + 1))]


def _lose_a_segment_of_the_table(world: World, rng: Random) -> None:
    kept = [plan for plan in plans(world) if plan.after >= world.cursor.start]
    for held in _one_of([held for plan in kept for held in plan.segments], rng):
        names = [segment_name(held) + MANIFEST, segment_name(held) + DATA]
        lose(world, rng.choice([names[:1], names[1:], names]))


def _one_of(things: list[T], rng: Random) -> list[T]:
    """One of some things; none of none."""
    return rng.sample(things, k=min(1, len(things)))
