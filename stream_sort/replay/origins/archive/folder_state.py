"""What the names in a queue's folder tell: what was planned, what is finished, and whether all of that is there. Pure.

A plan is finished when all its segments are there. Its mark tells in its name where it begins and ends, and how many
segments it has: from then on, a listing is enough to see that one of them was lost.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from stream_sort.model.message import MAX_SEQ
from stream_sort.replay.files.paths import decode_seq, encode_seq
from stream_sort.replay.origins.archive.manifest import DATA, LOST, MANIFEST, PLANS, deletable, first_seq, is_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stream_sort.replay.origins.archive.plan import SegmentPlan

_FINISHED = re.compile(r"(-?[0-9]{19})\.(-?[0-9]{19})\.([0-9]+)\.done")
# Queues that are named in notes.
SOME = 5
_PLAN = re.compile(r"(-?[0-9]{19})\.json")


@dataclass(frozen=True, slots=True, order=True)
class Finished:
    """The mark of a plan whose segments were all written."""

    first: int
    through: int
    segments: int

    @property
    def file_name(self) -> str:
        """The name of the mark, among the plans."""
        return f"{encode_seq(self.first)}.{encode_seq(self.through)}.{self.segments}.done"


@dataclass(frozen=True, slots=True)
class Damage:
    """What is not whole, from `after` on; where it is `planned`, it can be written again from the table."""

    after: int
    problem: str
    planned: bool = False


@dataclass(frozen=True, slots=True)
class FolderState:
    """The plans, the marks and the segments of one queue; plans and segments by their first seqs.

    Of plans that were read: `unmarked` are those that are finished all the same, `wrong` says what cannot be relied on,
    `through` how far each goes, and `queue` whose they are. `short` are marks whose last segments end before they do.
    `held` is where all manifests begin that are there, of lost segments, too, if somebody looked. `lacking` are the
    segments of plans that were read, and are not there.
    """

    plans: tuple[int, ...]
    finished: tuple[Finished, ...]
    segments: tuple[int, ...]
    unmarked: tuple[SegmentPlan, ...] = ()
    wrong: Mapping[int, str] = field(default_factory=dict)
    queue: str = ""
    through: Mapping[int, int] = field(default_factory=dict)
    short: Mapping[int, str] = field(default_factory=dict)
    held: tuple[int, ...] = ()
    lacking: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Iterable[str]) -> FolderState:
        """Read a state off the names in a queue's folder, sorted; a segment is there when its manifest is."""
        plans = [name.rpartition("/")[2] for name in names if PLANS in name]
        found = [one for one in map(_FINISHED.fullmatch, plans) if one]
        marks = [Finished(decode_seq(one[1]), decode_seq(one[2]), int(one[3])) for one in found]
        return cls(
            tuple(sorted(decode_seq(found[1]) for found in map(_PLAN.fullmatch, plans) if found)),
            # No run finishes nothing.
            tuple(sorted(mark for mark in marks if mark.first <= mark.through and mark.segments)),
            tuple(sorted(first_seq(name) for name in names if is_manifest(name))),
        )

    @property
    def end(self) -> int | None:
        """How far it is finished, None if nothing was ever planned."""
        if self.finished:
            return max(mark.through for mark in self.finished)
        return self.plans[0] - 1 if self.plans else None

    @property
    def begins(self) -> list[int]:
        """Where its plans begin, those included of which only the marks are left."""
        return sorted({*self._marks, *self.plans})

    @property
    def before(self) -> int | None:
        """After which seq its first manifest begins; None if there is none."""
        return self.held[0] - 1 if self.held else None

    @property
    def ends(self) -> dict[int, int]:
        """Where the last segments of finished plans must end, by where they begin."""
        last = ((mark, bisect_right(self.segments, mark.through) - 1) for mark in self._marks.values())
        return {self.segments[at]: mark.through for mark, at in last if at >= 0 and self.segments[at] >= mark.first}

    @property
    def strays(self) -> list[Finished]:
        """The marks that have neither their plans nor all their segments."""
        plans = set(self.plans)
        return [mark for mark in self.finished if mark.first not in plans and self._missing(mark)]

    def ahead(self, after: int) -> FolderState:
        """Return what counts for plans that begin after a seq: the first and the last one, and whatever goes beyond it.

        A run holds the states of all queues, and a queue may have had thousands of runs.
        """
        some = {*self.plans[:1], *self.plans[-1:], *(mark.first for mark in (*self.finished[:1], *self.finished[-1:]))}
        plans = tuple(first for first in self.plans if first > after or first in some)
        finished = tuple(mark for mark in self.finished if mark.through > after or mark.first in some)
        return replace(self, plans=plans, finished=finished, segments=(), held=())

    def room(self, after: int) -> int | None:
        """Up to where a plan may go that begins after a seq: it crosses no other plan or mark. None: anywhere."""
        here = self._marks.get(after + 1)
        ahead = (first - 1 for first in self.begins if first > after + 1)
        return min((*([here.through] if here else []), *ahead), default=None)

    def refusal(self, plan: SegmentPlan) -> str:
        """Why a plan must not be followed: a mark or another plan contradicts it; empty if none does."""
        mark, room = self._marks.get(plan.first), self.room(plan.after)
        if mark is not None and plan.first not in self.plans and plan.finished != mark:
            way = without_plan(mark) if plan.first == self.begins[-1] else deletable(plan.first)
            return f"the mark {mark.file_name} has no plan, and not all its segments are there; {LOST}. {way}"
        if room is None or plan.through <= room:
            return ""
        return (
            f"the plan from seq {plan.first} on goes to seq {plan.through}, and overlaps what is planned or finished "
            f"from seq {room + 1} on; {LOST}"
        )

    @property
    def readable(self) -> tuple[int, ...]:
        """The segments but for those of an unfinished plan: they come in any order, and may never be all there."""
        if not self.plans or self.plans[-1] in self._marks:
            return self.segments
        return self.segments[: bisect_left(self.segments, self.plans[-1])]

    @property
    def unfinished(self) -> int | None:
        """Where the newest plan begins, if it is not finished: its run has died, or is under way."""
        if not self.plans or self.plans[-1] in self._marks or self.plans[-1] in self.wrong:
            return None
        return self.plans[-1]

    @property
    def holes(self) -> list[tuple[int, int]]:
        """What lies between plans and is in none of them: after which seq, and up to which."""
        marks = self._marks
        return [
            (marks[one].through, other - 1)
            for one, other in pairwise(self.begins)
            if one in marks and marks[one].through < other - 1
        ]

    def in_doubt(self, released: int = MAX_SEQ) -> tuple[int, ...]:
        """Return where plans begin that have to be read: they have no mark, or one that says more than there is."""
        marks = self._marks
        return tuple(first for first in self.plans if first not in marks or self._is_doubted(marks[first], released))

    def knowing(
        self, plans: Iterable[SegmentPlan], whole: Iterable[SegmentPlan], wrong: Mapping[int, str]
    ) -> FolderState:
        """Return the state once plans were read, of which some have all their segments, and others cannot be read."""
        known, marks = list(plans), self._marks
        lies = {plan.first: marks[plan.first] for plan in known if marks.get(plan.first) not in {None, plan.finished}}
        wrong = {**wrong, **{plan.first: _describe(lies[plan.first], plan) for plan in known if plan.first in lies}}
        unmarked = tuple(plan for plan in whole if plan.first not in marks)
        trusted = (mark for mark in self.finished if mark.first not in wrong)
        finished = tuple(sorted((*trusted, *(plan.finished for plan in unmarked))))
        queue = known[0].queue if known else ""
        through = {plan.first: plan.through for plan in known}
        there = {*self.segments}
        lacking = {
            plan.first: tuple(one.after + 1 for one in plan.segments if one.after + 1 not in there) for plan in known
        }
        return replace(
            self, finished=finished, unmarked=unmarked, wrong=wrong, queue=queue, through=through, lacking=lacking
        )

    def damage(self, began: int | None = None) -> Damage | None:
        """Return the first thing that was there, and is not any more. The newest plan may be unfinished.

        `began` is where the archive began, if that is known.
        """
        marks, begun = self._marks, self.begins
        if began is not None and begun and begun[0] > began + 1:
            return self._beheaded(began, begun)
        end: int | None = None
        for before, first in zip((None, *begun), begun, strict=False):
            if end is not None and before is not None and first != end + 1:
                return Damage(end, self._overlap(before, first, end) if first <= end else _torn(end, first))
            if first in self.wrong:
                return Damage(first - 1, self.wrong[first])
            mark = marks.get(first)
            problem = self._unkept(mark) if mark else _UNMARKED if first != begun[-1] else ""
            if problem:
                told = f"from seq {first} on, {problem}; {LOST}"
                if first not in self.plans and mark is not None:
                    told += f". {without_plan(mark) if first == begun[-1] else deletable(first)}"
                return Damage(first - 1, told, first in self.plans)
            end = mark.through if mark else None
        return None

    @property
    def _marks(self) -> dict[int, Finished]:
        return {mark.first: mark for mark in self.finished}

    def _beheaded(self, began: int, begun: list[int]) -> Damage:
        """Return the loss of the beginning. It is planned anew, unless that could overlap what is left."""
        left = bisect_left(self.segments, begun[0])
        told = f"it began at seq {began + 1}, and its first plan that is there begins at seq {begun[0]}; {LOST}"
        if left:
            told += (
                f". Where nothing before seq {begun[0]} was trimmed, the {left} segments before it may be deleted "
                f"instead: archive writes them again, or begins at seq {begun[0]} where no watermark tells of them"
            )
        return Damage(began, told, planned=not left and {*begun} <= {*self.plans})

    def _overlap(self, before: int, first: int, end: int) -> str:
        """Return what to do about two plans that overlap: the later one may go, and is planned again."""
        marks = [mark.file_name for mark in self.finished if mark.first == first]
        files = [*marks, *([f"{encode_seq(first)}{MANIFEST}"] if first in self.plans else [])]
        return (
            f"the plan from seq {first} on overlaps the one from seq {before} on, which goes to seq {end}. Where no "
            f"segments overlap, {' and '.join(f'plans/{name}' for name in files)} may be deleted: archive goes on "
            f"along the segments that are there. Else {LOST}"
        )

    def _is_doubted(self, mark: Finished, released: int) -> bool:
        return mark.through > released or bool(self._missing(mark))

    def _unkept(self, mark: Finished) -> str:
        return self._missing(mark) or self.short.get(mark.first, "")

    def _missing(self, mark: Finished) -> str:
        found = bisect_right(self.segments, mark.through) - bisect_left(self.segments, mark.first)
        if found >= mark.segments:
            return ""
        lacking = self.lacking.get(mark.first, ())
        names = [encode_seq(first) + (DATA if first in self.held else MANIFEST) for first in lacking]
        more = f" and {len(names) - SOME} more" if len(names) > SOME else ""
        named = f" ({', '.join(names[:SOME])}{more})" if names else ""
        return f"{mark.segments - found} of the {mark.segments} segments up to seq {mark.through} are missing{named}"


_UNMARKED = "a plan is not marked as finished, not all its segments are there, and another one follows it"


def without_plan(mark: Finished) -> str:
    """Return what else can be done where a mark has lost its plan, and nothing follows it."""
    return (
        f"Where nothing from seq {mark.first} on was trimmed, the mark {mark.file_name} may be deleted instead: "
        "archive writes again what is missing"
    )


def _torn(end: int, first: int) -> str:
    return f"after seq {end} no plan goes on, and there is one from seq {first}; {LOST}. {deletable(end + 1)}"


def _describe(mark: Finished, plan: SegmentPlan) -> str:
    return (
        f"the mark {mark.file_name} says {mark.segments} segments up to seq {mark.through}, and its plan "
        f"{len(plan.ends)} up to seq {plan.through}: one of them was changed; {LOST}. A mark may be deleted: where all "
        "segments of its plan are there, archive makes it again"
    )


def settled(state: FolderState, look: Callable[[], FolderState]) -> FolderState:
    """Return the state, looked at again if it seems damaged: a run may write and mark while names are listed."""
    damage = state.damage()
    while damage is not None:
        state = look()
        again = state.damage()
        if again is None or again.after == damage.after:
            return state
        damage = again
    return state


def with_data(names: Iterable[str]) -> list[str]:
    """Return the names without the manifests whose segments are missing."""
    there = set(names)
    return [name for name in names if not is_manifest(name) or name.removesuffix(MANIFEST) + DATA in there]
