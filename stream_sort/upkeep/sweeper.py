"""Service: what to do when nobody else did. Applies gap policies, frees stuck queues, nudges sleepers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from stream_sort.errors import InvalidInput, shown
from stream_sort.model.durations import is_time
from stream_sort.model.gap_policy import MAX_GAP
from stream_sort.model.gaps import GapEvent, GapEventKind
from stream_sort.model.message import check_seq
from stream_sort.release.queues import Queues
from stream_sort.upkeep.nudges import Nudges, turned
from stream_sort.upkeep.queue_visit import QueueVisit, Visited
from stream_sort.upkeep.sweep import Sweep
from stream_sort.upkeep.visits import AT_ONCE, FOR_COUNTING, FOR_TELLING, FOR_WAKING, Allowance, Visits, batches
from stream_sort.upkeep.waiting_rows import IdleQueues, RowAges, since_measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.model.records import QueuePage
    from stream_sort.ports import Lagging

# Marks may lie ahead: by what the clock of a writer was ahead, and then so do all later ones of that queue, because no
# two are the same and they go one way only.
AHEAD = 100 * 366 * 86_400.0
# The share that is left for visits, and all that follows, when listing all queues ends for want of time.
FOR_VISITS = 0.75


class HasQueues(Protocol):
    """A StreamSorter, as far as a sweep needs one."""

    @property
    def queues(self) -> Queues:
        """Its queues."""


class Sweeper:
    """Looks after the queues of a sorter. Any number may run at once; a failing queue stops no other one.

    `on_gap` is called with each gap that a sweep finds, sees closed or gives up, in the thread of the caller: to ask
    the source for what is missing, for example. What it raises is recorded and stops nothing. Its time is that of the
    sweep: while it is called, no more queues are visited. What there is no time for is reported by the next sweep of
    this object.
    """

    visit = QueueVisit
    visits = Visits

    def __init__(
        self,
        sorter: HasQueues,
        *,
        lagging: Lagging | None = None,
        max_gap: int = MAX_GAP,
        on_gap: Callable[[GapEvent], object] | None = None,
    ) -> None:
        _check(sorter, lagging, on_gap)
        if check_seq(max_gap, "max_gap") < 0:
            raise InvalidInput(f"max_gap is {max_gap}; it must be at least 0")
        self._queues = sorter.queues
        self._cursors = self._queues.cursors
        self._lagging = lagging
        self._max_gap = max_gap
        self._on_gap = on_gap
        self._unreported: deque[GapEvent] = deque()
        # Where the next listing of all queues begins; None: at their first.
        self._place: Any = None

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
        at = self._queues.clock() if now is None else now
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
        if self._lagging is not None:
            Nudges(self._queues, self._lagging, time, done).send(at)
        self._call_back(time, FOR_TELLING, done)
        done.complete = done.complete and not self._unreported
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
        """Do the same for every queue with a cursor row: this also frees one whose last writer died unmarked.

        A quarter of the time is for listing them. Where it does not suffice, the next such sweep of this object goes
        on there.
        """
        done = self.sweep(now=now, queues=self._all(time_left), time_left=time_left, on_figures=on_figures)
        done.complete = done.complete and self._place is None
        return done

    def _all(self, time_left: Callable[[], float] | None) -> Iterator[str]:
        time = Allowance(time_left, time_left() if time_left else 0.0)
        start, self._place = self._place, None
        page = self._cursors.queues(start)
        yield from page.queues
        while page.next is not None:
            if time.is_short(FOR_VISITS):
                self._place = page.next
                return
            page = self._cursors.queues(page.next)
            yield from page.queues

    def _look_after(self, queues: Iterable[str] | None, now: float, time: Allowance, done: Sweep) -> None:
        marked = queues is None
        chosen = self._marked(now) if queues is None else queues
        problem = None
        if time.ask is not None:
            with time.keeping(FOR_WAKING):
                chosen, problem = _listed(chosen)
        visits = self.visits(self._queues, time, now, marked=marked)
        seen: set[str] = set()
        try:
            for batch in batches(turned(chosen, now) if isinstance(chosen, list) else chosen):
                with visits.once():
                    idle = self._idle(batch, now, done) if marked else set()
                made = self._visit([queue for queue in batch if queue not in idle], visits, now, time, done)
                seen |= idle | made
                if len(idle) + len(made) < len(set(batch)) or (idle and time.is_short(FOR_WAKING)):
                    self._count_others([queue for queue in chosen if queue not in seen], now, time, done, marked=marked)
                    break
        finally:
            # Also if the rest of the queues could not be listed.
            self._take(visits.again(), time, done)
        if problem is not None:
            raise problem

    def _idle(self, queues: list[str], now: float, done: Sweep) -> set[str]:
        """Return the queues that are to be left as they are, and count them as waiting."""
        known = self._queues
        idle = IdleQueues(known.cursors, known.items, known.gap_policy, now, self._max_gap).of(queues)
        for queue, age in idle.items():
            done.take(queue, Visited(age=age))
        return set(idle)

    def _visit(self, queues: list[str], visits: Visits, now: float, time: Allowance, done: Sweep) -> set[str]:
        """Visit queues while there is time; return those that were."""
        seen: set[str] = set()
        for batch in batches(queues, self._at_once()):
            made = visits.make([self.visit(self._queues, queue, now, self._max_gap) for queue in batch])
            self._take((visit for visit in made if visit.done.is_finished), time, done)
            seen.update(visit.queue for visit in made)
            if len(made) < len(batch):
                break
        return seen

    def _marked(self, now: float) -> Iterator[str]:
        """Name each queue that is marked as waiting, once: one that is marked anew meanwhile is listed again."""
        seen: set[str] = set()
        for queue in _names(lambda start: self._cursors.waiting(now + AHEAD, start)):
            if queue not in seen:
                seen.add(queue)
                yield queue

    def _take(self, visits: Iterable[QueueVisit], time: Allowance, done: Sweep) -> None:
        for visit in visits:
            done.take(visit.queue, visit.done)
            if self._on_gap is not None:
                self._unreported += (event for event in visit.done.events if event.kind is not GapEventKind.TOO_LONG)
        self._call_back(time, FOR_WAKING, done)

    def _at_once(self) -> int:
        """Return how many queues are visited before `on_gap` is called: what they found is noted, and found no more."""
        return AT_ONCE if self._on_gap is None else self._queues.in_flight.limit

    def _count_others(self, queues: list[str], now: float, time: Allowance, done: Sweep, *, marked: bool) -> None:
        """Count the queues for which there was no time: the figures of a part would rise and fall with each turn."""
        done.complete = done.complete and not queues
        rows = RowAges(self._cursors, now, lambda: time.is_short(FOR_COUNTING), marked)
        with time.keeping(FOR_COUNTING):
            ages = rows.of(queues, since_measured)
        done.waiting += ages
        done.gap_ages |= ages

    def _call_back(self, time: Allowance, share: float, done: Sweep) -> None:
        """Report gaps until a share of the time is left."""
        while self._on_gap is not None and self._unreported and not time.is_short(share):
            event = self._unreported.popleft()
            try:
                self._on_gap(event)
            except Exception as error:  # noqa: BLE001  # the user's code
                done.callback_errors.append((event, error))


def _names(pages: Callable[[Any], QueuePage]) -> Iterator[str]:
    """List queues, page after page."""
    page = pages(None)
    yield from page.queues
    while page.next is not None:
        page = pages(page.next)
        yield from page.queues


def _listed(queues: Iterable[str]) -> tuple[list[str], Exception | None]:
    """Return the queues, as far as they can be listed, and what kept the rest from it."""
    found: list[str] = []
    try:
        found.extend(queues)
    except Exception as error:  # noqa: BLE001  # raised when those that were listed had their turn
        return found, error
    return found, None


def _check(sorter: object, lagging: object, on_gap: object) -> None:
    if not isinstance(getattr(sorter, "queues", None), Queues):
        raise InvalidInput(f"a sweeper looks after a sorter, not {shown(sorter)}")
    if lagging is not None and not callable(getattr(lagging, "lagging", None)):
        raise InvalidInput(f"lagging has a method lagging(now), and {shown(lagging)} has none")
    if on_gap is not None and not callable(on_gap):
        raise InvalidInput(f"on_gap is called with a GapEvent, and {shown(on_gap)} cannot be")
