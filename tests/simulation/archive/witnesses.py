"""What there is to be seen of an archive: its plans and manifests, what it holds, what readers and an audit say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.errors import ArchiveDamaged, InvalidInput
from stream_sort.replay.audit.archive_survey import ArchiveSurvey
from stream_sort.replay.audit.promised import Promise, Promises
from stream_sort.replay.origins.archive.manifest import PLANS, first_seq, folder_of, is_manifest, parse
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.archive.plan import stored_plan
from stream_sort.replay.origins.archive.segments import read_segment
from stream_sort.replay.slots import document_of
from tests.simulation.archive.seams import SPARK
from tests.simulation.archive.world import QUEUE

if TYPE_CHECKING:
    from stream_sort.replay.origins.archive.manifest import Manifest
    from stream_sort.replay.origins.archive.plan import SegmentPlan
    from stream_sort.replay.ranges import Range
    from tests.simulation.archive.world import World


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader finds; `refusal` says why it reads nothing."""

    ranges: tuple[Range, ...] = ()
    refusal: str = ""
    is_damaged: bool = False


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit finds: the seqs in the segments that it trusts, in how many rows, and what is wrong."""

    seqs: frozenset[int]
    rows: int
    problems: tuple[str, ...]
    is_unmarked: bool

    @property
    def is_sound(self) -> bool:
        """Whether it finds nothing: no gap and nothing twice, either."""
        is_whole = not self.seqs or max(self.seqs) - min(self.seqs) + 1 == len(self.seqs)
        return not self.problems and is_whole and self.rows == len(self.seqs)


def manifests(world: World) -> list[Manifest]:
    """Those that can be read, sorted."""
    found = []
    for name in filter(is_manifest, world.names):
        try:
            found.append(parse(world.files.read(name), name, name))
        except ArchiveDamaged:
            continue
    return sorted(found, key=lambda one: one.range)


def plans(world: World) -> list[SegmentPlan]:
    """All plans, sorted."""
    folder = folder_of(QUEUE)
    names = [name for name in world.names if PLANS in name and name.endswith(".json")]
    return [stored_plan(world.files.read, folder, first) for first in sorted(map(first_seq, names))]


def contents(world: World) -> dict[int, dict[str, Any] | None]:
    """What the segments hold, whatever plans tell of them; None for what was skipped."""
    held: dict[int, dict[str, Any] | None] = {}
    for manifest in manifests(world):
        try:
            rows = [row for batch in read_segment(world.storage, manifest, manifest.range) for row in batch.to_pylist()]
        except ArchiveDamaged:
            continue
        held |= {row["seq"]: None if row["item"] is None else document_of(row["item"], row["binary"]) for row in rows}
    return held


def reading(world: World) -> Reading:
    """What a reader says."""
    try:
        return Reading(tuple(ArchiveOrigin(world.storage).ranges()))
    except (ArchiveDamaged, InvalidInput) as error:
        return Reading((), str(error), isinstance(error, ArchiveDamaged))


def audit(world: World) -> Audit | None:
    """What an audit says that knows the tables; None where it finds no archive."""
    mark, cursor = world.mark, world.cursor
    made = {} if mark is None or mark.began is None else {QUEUE: Promise(mark.began, mark.watermark)}
    survey = ArchiveSurvey(
        world.storage, None, Promises(made, {QUEUE: cursor.floor}, world.marks, world.sorter.stores.cursors)
    )
    try:
        runs = [row for batch in survey.runs(SPARK) for row in batch.to_pylist()]
    except InvalidInput:
        return None
    seqs = frozenset(seq for run in runs for seq in range(run["first"], run["last"] + 1))
    problems = tuple(one.problem for one in survey.damaged)
    return Audit(seqs, sum(run["rows"] for run in runs), problems, bool(survey.unmarked))
