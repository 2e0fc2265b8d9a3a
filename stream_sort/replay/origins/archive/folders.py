"""What there is of queues in an archive: names tell it, and the plans that names leave in doubt are read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stream_sort.errors import ArchiveDamaged, FileMissing, InvalidInput
from stream_sort.model.message import MAX_SEQ
from stream_sort.replay.files.paths import decode_queue, encode_seq
from stream_sort.replay.files.storage import AT_ONCE
from stream_sort.replay.origins.archive.folder_state import SOME, FolderState, settled, with_data
from stream_sort.replay.origins.archive.manifest import MANIFEST, QUEUES, deletable, first_seq, is_manifest, parse
from stream_sort.replay.origins.archive.plan import SegmentPlan, stored_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from stream_sort.replay.origins.archive.folder_state import Damage
    from stream_sort.replay.origins.archive.manifest import Manifest
    from stream_sort.replay.ranges import Range

UNFINISHED = "a run of archive is not finished; what it has written so far is left out; run archive again"
STRAY = "no queue's folder has such a name; move it out of the archive"


@dataclass(frozen=True, slots=True)
class Folder:
    """What there is to read of one queue: its manifests, and what is damaged. What a run still writes is left out.

    `ends` says how far some segments must go, by the names of their manifests: marks tell it, and names do not.
    """

    name: str
    manifests: tuple[str, ...]
    damage: Damage | None
    unfinished: bool
    planned_for: str = ""
    ends: Mapping[str, int] = field(default_factory=dict)

    @property
    def queue(self) -> str:
        """Whose folder it is; empty if that cannot be told: a long name stands in plans only."""
        return "" if self.is_stray else self.planned_for or self._decoded() or ""

    @property
    def is_stray(self) -> bool:
        """Whether it has what folders of queues have, and the name of none: somebody has put it there."""
        try:
            self._decoded()
        except InvalidInput:
            return bool(self.manifests or self.damage is not None or self.unfinished)
        return False

    def _decoded(self) -> str | None:
        return decode_queue(self.name.removeprefix(QUEUES).rstrip("/"))


@dataclass(frozen=True, slots=True)
class FolderReader:
    """Looks at a queue's folder, and reads its plans where names are not enough. Queues with all their marks cost none.

    A plan that was lost is made again from the manifests of its segments, if those are all there: between others, and
    where it is known after which seq the archive `began`, and how far it `reached`, also before and behind them.

    `is_written` looks closer at the segments of a plan without a mark; a mark beyond `released` is not believed.
    """

    read: Callable[[str], bytes]
    is_written: Callable[[Range], bool] = lambda _: True
    released: int = MAX_SEQ
    began: int | None = None
    reached: int | None = None

    def look(self, folder: str, names: Sequence[str]) -> FolderState:
        """Return the state of a folder with these names, sorted."""
        state = FolderState.of(names)
        doubts = state.in_doubt(self.released)
        if not doubts and not self._lost(state):
            return state
        known: list[SegmentPlan] = []
        wrong: dict[int, str] = {}
        for first in doubts:
            try:
                known.append(stored_plan(self.read, folder, first))
            except (ArchiveDamaged, FileMissing) as error:
                wrong[first] = _describe(first, error)
        there = {first_seq(name) for name in with_data(names) if is_manifest(name)}
        whole = [plan for plan in known if self._is_whole(plan, there)]
        told = state.knowing(known, whole, wrong)
        made = [plan for hole in self._lost(told) for plan in self._made_again(folder, there, *hole)]
        return state.knowing([*known, *made], [*whole, *made], wrong) if made else told

    def _lost(self, state: FolderState) -> list[tuple[int, int, int]]:
        """Return where plans are lost: after which seq, at least up to which, and at most."""
        found, begins = [(after, through, through) for after, through in state.holes], state.begins
        if begins and self.began is not None and begins[0] > self.began + 1:
            found.append((self.began, begins[0] - 1, begins[0] - 1))
        end = state.end if begins else self.began
        if end is not None and self.reached is not None and end < self.reached and end + 1 not in begins:
            found.append((end, self.reached, self.released))
        return found

    def _made_again(self, folder: str, there: set[int], after: int, least: int, most: int) -> Iterator[SegmentPlan]:
        """Yield a plan that was lost, if its segments are all there."""
        held: list[Manifest] = []
        end = after
        for first in sorted(first for first in there if after < first <= least):
            name = f"{folder}{encode_seq(first)}{MANIFEST}"
            try:
                held.append(parse(self.read(name), name, name))
            except (ArchiveDamaged, FileMissing):
                return
            if held[-1].after != end:
                return
            end = held[-1].through
        if held and least <= end <= most and all(self.is_written(one.range) for one in held):
            yield SegmentPlan(held[0].queue, after, tuple(one.through for one in held))

    def _is_whole(self, plan: SegmentPlan, there: set[int]) -> bool:
        return all(held.after + 1 in there for held in plan.segments) and all(map(self.is_written, plan.segments))


def with_true_end(state: FolderState, folder: str, read: Callable[[str], bytes]) -> FolderState:
    """Return the state once it is known whether its last segment ends where its mark says: a new plan begins there.

    A manifest that cannot be read is named by whoever reads the segment.
    """
    mark = max(state.finished, default=None)
    last = max(state.ends.items(), default=None)
    if mark is None or last is None or last[1] != mark.through:
        return state
    name = f"{folder}{encode_seq(last[0])}{MANIFEST}"
    try:
        through = parse(read(name), name, name).through
    except (ArchiveDamaged, FileMissing):
        return state
    if through == mark.through:
        return state
    told = f"the last segment ends at seq {through}, and the mark {mark.file_name} says {mark.through}"
    return replace(state, short={mark.first: told})


def folders(
    names: Iterable[str], look: Callable[[str], Sequence[str]], read: Callable[[str], bytes]
) -> Iterator[Folder]:
    """Yield the folders of some names; `look` lists a folder again."""
    reader, by_folder = FolderReader(read), dict[str, list[str]]()
    for name in names:
        by_folder.setdefault(QUEUES + name.removeprefix(QUEUES).partition("/")[0] + "/", []).append(name)

    def judged(folder: str) -> FolderState:
        return settled(reader.look(folder, by_folder[folder]), lambda: reader.look(folder, look(folder)))

    plain = {folder: FolderState.of(held) for folder, held in by_folder.items()}
    doubtful = [folder for folder, state in plain.items() if state.in_doubt() or state.damage() is not None]
    plain |= zip(doubtful, AT_ONCE.map(judged, doubtful), strict=True)
    for folder, state in plain.items():
        names_of = {first: f"{folder}{encode_seq(first)}{MANIFEST}" for first in state.readable}
        ends = {names_of[first]: through for first, through in state.ends.items() if first in names_of}
        manifests = tuple(names_of.values())
        yield Folder(folder, manifests, state.damage(), state.unfinished is not None, state.queue, ends)


def unfinished_notes(queues: Iterable[str]) -> tuple[str, ...]:
    """Return what is said of queues whose newest plan is not finished; a few are named."""
    found = sorted(queues)
    told = [f"queue {queue!r}: {UNFINISHED}" for queue in found[:SOME]]
    if len(found) > SOME:
        told.append(f"and {len(found) - SOME:,} more queues with a run of archive that is not finished")
    return tuple(told)


def _describe(first: int, error: ArchiveDamaged | FileMissing) -> str:
    return f"the plan from seq {first} on cannot be followed: {error}. {deletable(first)}"
