"""Service: what to do when nobody else did. Applies gap policies, frees stuck queues, nudges sleepers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from stream_sort.core.gaps import GapEvent, GapEventKind
from stream_sort.core.message import check_seq
from stream_sort.core.policy import MAX_GAP
from stream_sort.core.times import is_time
from stream_sort.errors import CursorLost, InvalidInput, StreamSortError, named_error, shown
from stream_sort.ports.time_limit import time_limit
from stream_sort.queue_visit import QueueVisit
from stream_sort.row_ages import row_ages
from stream_sort.sorter import Sorter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.core.outcomes import Advance
    from stream_sort.core.records import QueuePage
    from stream_sort.ports import Lagging
    from stream_sort.queue_visit import Visited

# Marks may lie a moment ahead: clocks differ, and no two marks of a queue are the same.
AHEAD = 1.0
# How many queues are taken from the listing at once.
AT_ONCE = 50
# The shares of its time that a sweep keeps: for waking consumers, and then for telling what it did.
FOR_WAKING, FOR_TELLING = 0.5, 0.1
# The share that is left for nudges and for telling when all time for finding out who sleeps is used up.
FOR_NUDGES = 0.3
STRIDE = 7_919


@dataclass(slots=True)
class Sweep:
    """What a sweep did.

    `waiting` are the queues that something holds up, and `gap_ages` tells for how many seconds, 0 where that is not
    known: those that wait at a gap, too long to be skipped or not, and marked ones that could not be looked at, or
    for which there was no time: their ages are those that earlier sweeps noted.
    `skipped` are gaps that were given up, `found` those at which a queue is seen waiting for the first time, `closed`
    those found before that are there no more, `too_long` those that are due but longer than a sweep skips by itself.
    `failed` are queues with the error that stopped the work on them: any error, a bug of ours included, stops no other
    queue. `watch_error` kept it from finding all consumers that sleep; `callback_errors` is what `on_gap` raised.
    Not `complete` is a sweep whose time was over; each begins at another queue, so all have their turn. Not `listed` is
    one that could not list the queues: how many wait, and for how long, is not known then.
    """

    looked_at: int = 0
    advanced: list[Advance] = field(default_factory=list)
    skipped: list[GapEvent] = field(default_factory=list)
    nudged: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    too_long: list[GapEvent] = field(default_factory=list)
    failed: list[tuple[str, StreamSortError]] = field(default_factory=list)
    gap_ages: dict[str, float] = field(default_factory=dict)
    complete: bool = True
    listed: bool = True
    found: list[GapEvent] = field(default_factory=list)
    closed: list[GapEvent] = field(default_factory=list)
    watch_error: StreamSortError | None = None
    callback_errors: list[tuple[GapEvent, Exception]] = field(default_factory=list)

    @property
    def oldest_gap(self) -> float:
        """The age in seconds of the gap that holds a queue up longest; 0 if none does."""
        return max(self.gap_ages.values(), default=0.0)

    def take(self, queue: str, visited: Visited) -> None:
        """Add what a visit to a queue did and saw."""
        self.advanced += visited.advanced
        kinds = {
            GapEventKind.FOUND: self.found,
            GapEventKind.CLOSED: self.closed,
            GapEventKind.GIVEN_UP: self.skipped,
            GapEventKind.TOO_LONG: self.too_long,
        }
        for event in visited.events:
            kinds[event.kind].append(event)
        if visited.age is not None:
            self.waiting.append(queue)
            self.gap_ages[queue] = visited.age
        if visited.error is not None:
            self.failed.append((queue, visited.error))
        self.complete = self.complete and visited.complete
        self.looked_at += 1


@dataclass(frozen=True, slots=True)
class Allowance:
    """The seconds a sweep has in all, and whom to ask how many are left; it has all the time where nobody is to ask."""

    ask: Callable[[], float] | None
    whole: float

    def is_short(self, share: float) -> bool:
        """Return True if less than a share of the whole is left."""
        return self.ask is not None and self.ask() < share * self.whole

    def but(self, share: float) -> float:
        """Return the seconds left before only a share of the whole is."""
        return math.inf if self.ask is None else self.ask() - share * self.whole


class Sweeper:
    """Looks after the queues of a sorter. Any number may run at once; a failing queue stops no other one.

    `on_gap` is called with each gap that a sweep finds, sees closed or gives up, in the thread of the caller: to ask
    the source for what is missing, for example. What it raises is recorded and stops nothing.
    """

    visit = QueueVisit

    def __init__(
        self,
        sorter: Sorter,
        *,
        lagging: Lagging | None = None,
        max_gap: int = MAX_GAP,
        on_gap: Callable[[GapEvent], object] | None = None,
    ) -> None:
        _check(sorter, lagging, on_gap)
        if check_seq(max_gap, "max_gap") < 0:
            raise InvalidInput(f"max_gap is {max_gap}; it must be at least 0")
        self._sorter = sorter
        self._cursors = sorter.stores.cursors
        self._lagging = lagging
        self._max_gap = max_gap
        self._on_gap = on_gap

    def sweep(
        self,
        *,
        now: float | None = None,
        queues: Iterable[str] | None = None,
        time_left: Callable[[], float] | None = None,
        on_figures: Callable[[Sweep], object] | None = None,
    ) -> Sweep:
        """Look at every queue that is marked as waiting (or at `queues`) and do what is due.

        The mark is a hint: each queue is read again before anything is done about it. `time_left` is asked for seconds
        before each queue; half of them are for the queues that wait, the rest but a tenth of all for waking consumers.
        `on_figures` is called when all queues were looked at, before anybody is woken. What it raises, and what kept
        the queues from being listed, is raised at the end.
        """
        at = self._sorter.clock() if now is None else now
        if not is_time(at):
            raise InvalidInput(f"now is a time in seconds since the epoch, not {shown(at)}")
        if isinstance(queues, str | bytes) or not isinstance(queues, Iterable | None):
            raise InvalidInput(f"queues is an iterable of queue names, not {shown(queues)}")
        done = Sweep()
        time = Allowance(time_left, time_left() if time_left else 0.0)
        problems: list[Exception] = []
        try:
            self._look_after(queues, at, time, done)
        except Exception as error:  # noqa: BLE001  # also if the queues could not be listed, who sleeps is woken
            done.listed = done.complete = False
            problems.append(error)
        try:
            if on_figures is not None:
                on_figures(done)
        except Exception as error:  # noqa: BLE001  # the user's code
            problems.append(error)
        self._wake(at, time, done)
        if problems:
            raise problems[0]
        return done

    def sweep_all(
        self,
        *,
        now: float | None = None,
        time_left: Callable[[], float] | None = None,
        on_figures: Callable[[Sweep], object] | None = None,
    ) -> Sweep:
        """The same over every queue with a cursor row: also frees one whose last writer died unmarked."""
        return self.sweep(now=now, queues=_names(self._cursors.queues), time_left=time_left, on_figures=on_figures)

    def _look_after(self, queues: Iterable[str] | None, now: float, time: Allowance, done: Sweep) -> None:
        marked = queues is None
        chosen = _names(lambda start: self._cursors.waiting(now + AHEAD, start)) if queues is None else queues
        if time.ask is not None:
            chosen = list(chosen)
        seen: set[str] = set()
        for batch in _batches(_turned(chosen, now) if isinstance(chosen, list) else chosen):
            visits = self._sorter.in_flight.map(lambda queue: self._attempt(queue, now, time, marked=marked), batch)
            for queue, visited in zip(batch, visits, strict=True):
                if visited is not None:
                    seen.add(queue)
                    done.take(queue, visited)
                    self._call_back(visited.events, time, done)
            if None in visits:
                self._count_others([queue for queue in chosen if queue not in seen], now, time, done, marked=marked)
                break

    def _count_others(self, queues: list[str], now: float, time: Allowance, done: Sweep, *, marked: bool) -> None:
        """Count the queues for which there was no time: the figures of a part would rise and fall with each turn."""
        done.complete = False
        ages = row_ages(self._cursors, queues, now, lambda: time.is_short(FOR_TELLING), marked=marked)
        done.waiting += ages
        done.gap_ages |= ages

    def _attempt(self, queue: str, now: float, time: Allowance, *, marked: bool) -> Visited | None:
        """Visit a queue, listed as waiting if `marked`; None if there is no time for it."""
        if time.is_short(FOR_WAKING):
            return None
        visit = self.visit(self._sorter, queue, now, self._max_gap)
        try:
            visit.run(lambda: time.is_short(FOR_WAKING))
        except Exception as error:  # noqa: BLE001  # I7: also a bug of ours is the trouble of its own queue only
            visit.done.error = named_error(queue, error)
            if visit.done.age is None and not isinstance(error, CursorLost | InvalidInput):
                visit.done.age = self._age_of_failed(queue, now, marked=marked)
        return visit.done

    def _age_of_failed(self, queue: str, now: float, *, marked: bool) -> float | None:
        """Return for how long a queue has waited, by its row; 0 if that cannot be read either, None if it does not."""
        try:
            row = self._cursors.get(queue)
        except Exception:  # noqa: BLE001  # the error that counts is recorded already
            return 0.0 if marked else None
        if row is None or row.waiting_since is None:
            return None
        return max(0.0, now - (row.gap_since or now))

    def _wake(self, now: float, time: Allowance, done: Sweep) -> None:
        """Nudge the queues of sleeping consumers; after the gaps, whose policies need no control table."""
        try:
            with time_limit(lambda: time.but(FOR_NUDGES)):
                queues = list(self._lagging.lagging(now)) if self._lagging else []
        except Exception as error:  # noqa: BLE001  # I7: what the sweep did so far is not lost for it
            done.watch_error = named_error("(all)", error)
            return
        for batch in _batches(_turned(queues, now)):
            answers = self._sorter.in_flight.map(lambda queue: self._nudge(queue, time), batch)
            for queue, answer in zip(batch, answers, strict=True):
                if answer is True:
                    done.nudged.append(queue)
                elif isinstance(answer, StreamSortError):
                    done.failed.append((queue, answer))
            if False in answers:
                done.complete = False
                break
        self._settle(done)

    def _settle(self, done: Sweep) -> None:
        """Tell whoever named the queues which of them were nudged, and note what it could not look at."""
        try:
            were_nudged = getattr(self._lagging, "were_nudged", None)
            if callable(were_nudged):
                were_nudged(tuple(done.nudged))
        except Exception as error:  # noqa: BLE001  # I7, as above
            done.watch_error = named_error("(all)", error)
        done.watch_error = done.watch_error or getattr(self._lagging, "problem", None)
        done.failed += getattr(self._lagging, "damaged", ())

    def _nudge(self, queue: str, time: Allowance) -> bool | StreamSortError:
        """Nudge a queue; False if there is no time for it."""
        if time.is_short(FOR_TELLING):
            return False
        try:
            self._sorter.nudge(queue)
        except Exception as error:  # noqa: BLE001  # I7, as above
            return named_error(queue, error)
        return True

    def _call_back(self, events: list[GapEvent], time: Allowance, done: Sweep) -> None:
        if self._on_gap is None:
            return
        for event in events:
            if event.kind is GapEventKind.TOO_LONG:
                continue
            if time.is_short(FOR_TELLING):
                done.complete = False
                return
            try:
                self._on_gap(event)
            except Exception as error:  # noqa: BLE001  # the user's code
                done.callback_errors.append((event, error))


def _names(pages: Callable[[Any], QueuePage]) -> Iterator[str]:
    """The queues of a listing, page after page."""
    page = pages(None)
    yield from page.queues
    while page.next is not None:
        page = pages(page.next)
        yield from page.queues


def _turned(queues: list[str], now: float) -> list[str]:
    """The same queues from another one on, every second another."""
    start = int(now) * STRIDE % len(queues) if queues else 0
    return queues[start:] + queues[:start]


def _batches(queues: Iterable[str]) -> Iterator[list[str]]:
    line = iter(queues)
    while batch := list(islice(line, AT_ONCE)):
        yield batch


def _check(sorter: object, lagging: object, on_gap: object) -> None:
    if not isinstance(sorter, Sorter):
        raise InvalidInput(f"a sweeper looks after a sorter, not {shown(sorter)}")
    if lagging is not None and not callable(getattr(lagging, "lagging", None)):
        raise InvalidInput(f"lagging has a method lagging(now), and {shown(lagging)} has none")
    if on_gap is not None and not callable(on_gap):
        raise InvalidInput(f"on_gap is called with a GapEvent, and {shown(on_gap)} cannot be")
