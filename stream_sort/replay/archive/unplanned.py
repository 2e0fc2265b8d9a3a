"""Segments whose plan was lost. A new plan goes along them: one that crosses them would hold their seqs twice."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from stream_sort.errors import ArchiveDamaged, FileMissing
from stream_sort.replay.origins.archive.manifest import first_seq, folder_of, is_manifest, parse
from stream_sort.replay.origins.archive.plan import plan_name
from stream_sort.replay.ranges import Range

if TYPE_CHECKING:
    from stream_sort.replay.files.storage import Storage


def unplanned(storage: Storage, wanted: Range, room: int | None, released: int) -> list[Range]:
    """Return what the segments hold that lie where a plan is to begin, sorted; nothing if it is there.

    No plan may go beyond `room`. An empty range says where a segment begins that is to be written anew.
    ArchiveDamaged where no plan can go along them.
    """
    folder, end = folder_of(wanted.queue), wanted.after
    names = list(filter(is_manifest, storage.list(folder)))
    # In this order: whoever writes segments has fixed their plan before.
    if storage.exists(plan_name(folder, wanted.after + 1)):
        return []
    starts = [first_seq(name) for name in names]
    # The one before may go on beyond where the plan begins.
    some = slice(max(0, bisect_right(starts, wanted.after) - 1), None if room is None else bisect_right(starts, room))
    limit = released if room is None else min(released, room)
    found: list[Range] = []
    for name in names[some]:
        held = _held(storage, wanted.queue, name)
        if held.through <= wanted.after and held.after < wanted.after:
            continue
        if held.after < end or held.through > limit:
            raise ArchiveDamaged(storage.address(name), _told(held, wanted, end, limit))
        found.append(held)
        end = held.through
    return found


def _held(storage: Storage, queue: str, name: str) -> Range:
    try:
        return parse(storage.read(name), name, storage.address(name)).range
    except (ArchiveDamaged, FileMissing):
        return Range(queue, first_seq(name) - 1, first_seq(name) - 1)


def _told(held: Range, wanted: Range, end: int, limit: int) -> str:
    if held.after < wanted.after:
        return (
            f"it goes on to seq {held.through}, and no plan goes beyond {wanted.after}: put plans back from a backup, "
            "or begin another archive"
        )
    why = f"others go on to {end}" if held.after < end else f"nothing may go beyond {limit}"
    return (
        f"it holds seqs {held.after + 1} to {held.through}, {why}, and no plan tells what counts. Nothing from seq "
        f"{wanted.after + 1} on was trimmed: put the plans back from a backup, or delete all files of the queue from "
        "there on, and archive writes them again"
    )
