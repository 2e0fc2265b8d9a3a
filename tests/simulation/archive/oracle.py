"""What must hold of an archive, whatever happens to the runs that write it.

A1  nothing is deleted from the table that the archive does not hold, message by message
A2  no plan and no segment crosses another one
A3  a manifest is never written over by another one
A4  a run that says it is complete is: readers take the archive, it goes up to the position in one piece and holds
    what was released, an audit finds nothing, and the watermark is at its end
A5  after a complete run, another one writes nothing, and is complete
A6  where nothing was lost, every run that ends is complete, and one that dies leaves nothing that looks damaged
A7  what the next run must mend is mended
A8  what readers refuse, an audit finds; where it finds nothing, everything up to the watermark can be read
A9  a run ends with a report, and with no error
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from stream_sort.testing.simulation.failure import InvariantBroken
from tests.simulation.archive.witnesses import audit, contents, manifests, plans, reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stream_sort.model.slots import Entry
    from stream_sort.replay.engine.report import JobReport
    from stream_sort.replay.origins.archive.manifest import Manifest
    from stream_sort.replay.origins.archive.plan import SegmentPlan
    from tests.simulation.archive.modes import Mode
    from tests.simulation.archive.witnesses import Audit, Reading
    from tests.simulation.archive.world import World


class Oracle:
    """Judges a world after each run and each mishap.

    Where files were exchanged, no run promises to notice: A2 to A5 are not asked for.
    """

    def __init__(self, world: World, mode: Mode) -> None:
        self._world = world
        self._mode = mode
        self._trimmed: set[int] = set()

    def judge(self, report: JobReport | None = None) -> None:
        """Raise InvariantBroken where something does not hold; `report` is that of the run that has just ended."""
        read, found = reading(self._world), audit(self._world)
        self._judge_trimmed()
        self._judge_witnesses(read, found)
        if not self._world.losses:
            self._judge_unharmed(read, found)
        if not self._mode.exchanges:
            self._judge_files()
        if report is None:
            return
        if not report.complete:
            self._judge_problem(report)
        elif not self._mode.exchanges:
            self._judge_complete(read, found)

    def judge_again(self, before: Mapping[str, bytes], report: JobReport) -> None:
        """Judge a run right behind a complete one; `before` are the files that it found."""
        after = self._world.files.contents
        changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        if changed:
            raise InvariantBroken("A5", f"all was archived, and the next run wrote {changed}")
        if not report.complete:
            raise InvariantBroken("A5", "all was archived, and the next run is not complete")

    def _judge_trimmed(self) -> None:
        """What was trimmed since we looked; what gets lost later is none of the trim's."""
        new = {seq: item for seq, item in self._world.trimmed.items() if seq not in self._trimmed}
        if new:
            self._trimmed |= new.keys()
            _check_held("A1", "were deleted", new.values(), contents(self._world))

    def _judge_files(self) -> None:
        found, planned = manifests(self._world), plans(self._world)
        _check_apart(found)
        _check_apart(planned)
        for plan in planned:
            ranges = plan.segments
            for held in (manifest.range for manifest in found):
                if held.after < plan.through and plan.after < held.through and held not in ranges:
                    raise InvariantBroken("A2", f"{plan} crosses the segment {held}")
        if self._world.files.overwritten:
            raise InvariantBroken("A3", f"{self._world.files.overwritten} were written over")

    def _judge_complete(self, read: Reading, found: Audit | None) -> None:
        cursor, mark = self._world.cursor, self._world.mark
        if not manifests(self._world) and cursor.start >= cursor.position:
            return
        if read.refusal or len(read.ranges) != 1:
            raise InvariantBroken("A4", f"complete, and readers find {read.ranges}, and say: {read.refusal}")
        (whole,) = read.ranges
        if whole.through < cursor.position:
            raise InvariantBroken("A4", f"complete, and {whole} ends before {cursor.position}")
        if found is None or not found.is_sound or found.is_unmarked:
            raise InvariantBroken("A4", f"complete, and an audit says {found}")
        if mark is None or mark.watermark != whole.through:
            raise InvariantBroken("A4", f"complete, and {mark} is not the end of {whole}")
        wanted = [item for seq, item in self._world.released.items() if seq > whole.after]
        if not self._world.is_forgotten:
            # As long as the watermark tells where it began, nothing can get lost before there.
            wanted += self._world.trimmed.values()
        _check_held("A4", "were released", wanted, contents(self._world))

    def _judge_problem(self, report: JobReport) -> None:
        told = [row["problem"] for row in report.queues]
        if not self._world.losses:
            raise InvariantBroken("A6", f"nothing was lost, and a run says {told}")
        if self._mode.is_mended:
            raise InvariantBroken("A7", f"what was lost can be mended, and a run says {told}")

    def _judge_unharmed(self, read: Reading, found: Audit | None) -> None:
        if read.is_damaged or (found is not None and not found.is_sound):
            raise InvariantBroken("A6", f"nothing was lost; readers say {read.refusal!r}, an audit {found}")
        alone = [one.name for one in manifests(self._world) if one.data_name not in self._world.files.contents]
        if alone:
            raise InvariantBroken("A6", f"nothing was lost, and {alone} have no segments")

    def _judge_witnesses(self, read: Reading, found: Audit | None) -> None:
        if found is None or not found.is_sound:
            return
        if read.refusal:
            raise InvariantBroken("A8", f"an audit finds nothing, and readers refuse: {read.refusal}")
        mark = self._world.mark
        if mark is not None and mark.began is not None:
            lacking = set(range(mark.began + 1, mark.watermark + 1)).difference(found.seqs)
            if lacking:
                raise InvariantBroken("A8", f"an audit finds nothing, and {sorted(lacking)} of {mark} cannot be read")


def _check_apart(ordered: Sequence[Manifest | SegmentPlan]) -> None:
    for before, after in pairwise(ordered):
        if after.after < before.through:
            raise InvariantBroken("A2", f"{before} and {after} overlap")


def _check_held(number: str, what: str, items: Iterable[Entry], held: Mapping[int, dict[str, Any] | None]) -> None:
    wrong = [item for item in items if item.seq not in held or held[item.seq] != _document(item)]
    if wrong:
        raise InvariantBroken(number, f"these {what}, and are not in the archive: {wrong}")


def _document(item: Entry) -> dict[str, Any] | None:
    return None if item.is_tombstone else item.document
