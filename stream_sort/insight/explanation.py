"""Why a queue is where it is, in sentences, and the command that would free it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import dropwhile, zip_longest
from typing import TYPE_CHECKING

from stream_sort.insight.consumers import NOT_BEGUN, PARKED, STUCK, WORKING, readers_of
from stream_sort.insight.wording import age, counted, moment, seqs_text, some_of
from stream_sort.model.gap_policy import MAX_GAP, MOST_SKIPS
from stream_sort.model.gaps import length, runs_of, stray_of
from stream_sort.model.message import MIN_SEQ

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.errors import StreamSortError
    from stream_sort.insight.consumers import QueueReader
    from stream_sort.insight.sources import OwnConsumer, Sources
    from stream_sort.insight.wording import CommandText
    from stream_sort.model.consumption import DeadLetter, Parked
    from stream_sort.model.outcomes import QueueState

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of a queue, in figures and in sentences, and the commands that would free it."""

    state: QueueState
    consumers: list[QueueReader]
    sentences: list[str]
    commands: list[str]


def explanation_of(sources: Sources, queue: str, command: CommandText) -> Explanation:
    """Look at a queue and all its consumers; QueueNotFound if nothing was ever put into it."""
    state = sources.explain(queue)
    unreadable: dict[str, StreamSortError] = {}
    readers = list(readers_of(sources, state, unreadable))
    now = sources.clock()
    may_be_opened = _may_be_opened(sources, state)
    sentences = [*_standing(state, now), *_policy(state, now), *_kept(state)]
    sentences += _search(state, command, may_be_opened=may_be_opened)
    for reader in readers:
        sentences += _consumption(reader, state.first_seq, now, sources.own)
        if reader.discarded:
            why = command("dead", "list", queue, options=["--discarded", "--consumer", reader.name])
            gone = f"{counted(len(reader.discarded), 'message')}: {_places(reader.discarded)}"
            sentences.append(f"Consumer {reader.name!r} discarded {gone}; why: {why}")
    sentences += [f"Consumer {name!r} could not be looked at: {error}" for name, error in unreadable.items()]
    commands = [
        *_queue_commands(state, command, may_be_opened=may_be_opened),
        *_consumer_commands(readers, queue, command),
    ]
    return Explanation(state, readers, sentences, commands)


def _standing(state: QueueState, now: float) -> Iterator[str]:
    queue = f"Queue {state.queue!r}"
    if state.position < state.first_seq:
        yield f"{queue} starts at seq {state.first_seq}; nothing is released yet."
    else:
        yield f"{queue} starts at seq {state.first_seq} and is released through seq {state.position}."
    if state.gaps:
        since = "" if state.waiting_since is None else f", {_since(state.waiting_since, now)}"
        more = f"; {len(state.gaps):,} gaps in all" if len(state.gaps) > 1 else ""
        yield f"It waits for seq {seqs_text(state.gaps[:1])}{since}{more}."
        end = "" if state.skipped_ahead else f", up to seq {state.highest_stored}"
        yield f"Stored beyond that: {_beyond(state)}{end}."
        if (stray := _stray(state)) is not None:
            yield (
                f"Before seq {stray} more than {MAX_GAP:,} seqs are missing: is seq {stray} a mistake, such as a time? "
                "Then stop its producer, and withdraw the message."
            )
            yield from _no_stray(state, stray)
    elif state.stored_beyond:
        died = "a writer died, or another program wrote it to the table"
        yield f"Seq {state.position + 1} is stored but not released: {died}."
    else:
        yield "Nothing waits: all that is stored is released."
    if state.skipped_ahead:
        yield _in_advance(state)
    if lost := _lost(state):
        yield f"Released but not stored: seq {seqs_text([lost])}. Was the items table restored? Put them again."
    if state.floor is not None:
        yield f"It is trimmed through seq {state.floor}."


def _no_stray(state: QueueState, stray: int) -> Iterator[str]:
    """Say what else there is to do, if the message behind a long gap is where it belongs."""
    if length(state.gaps[0]) <= MAX_GAP or stray != state.gaps[0].stop:
        return
    if state.position < state.first_seq:
        yield f"If its producer really begins at seq {stray}, open the queue there: lower seqs are refused then."
    elif length(state.gaps[0]) <= MOST_SKIPS:
        yield "If the seqs before it are really lost, skip gives them up; they cannot be delivered any more then."


def _beyond(state: QueueState) -> str:
    """Say what is stored beyond a gap; of too much to look at only that there are slots which are taken."""
    if not state.complete:
        return f"at least {counted(state.stored_beyond, 'message')} or skipped seqs"
    skipped = sum(seq > state.position for seq in state.skipped) - len(state.skipped_ahead)
    messages = state.stored_beyond - skipped
    told = [counted(messages, "message")] if messages else []
    return " and ".join([*told, counted(skipped, "skipped seq")] if skipped else told)


def _in_advance(state: QueueState) -> str:
    """Say which seqs were skipped that nothing waits beyond."""
    known, is_one = "" if state.complete else "at least ", len(state.skipped_ahead) == 1
    told = some_of([seqs_text([run]) for run in runs_of(state.skipped_ahead)])
    return (
        f"Skipped in advance: {known}seq {told}. The queue passes over {'it' if is_one else 'them'} when it gets there."
    )


def _lost(state: QueueState) -> range:
    """Return what is missing below the position, as far as its end shows: what is at the position is never trimmed."""
    start = state.first_seq - 1 if state.floor is None else max(state.first_seq - 1, state.floor)
    highest = start if state.highest_stored is None else state.highest_stored
    return range(highest + 1, state.position + 1)


def _policy(state: QueueState, now: float) -> Iterator[str]:
    after = state.policy.skip_after
    if not state.gaps:
        return
    if after is None:
        yield "Gap policy: wait. The gap is not skipped automatically."
    elif _is_held_by_a_long_gap(state):
        yield f"Gap policy: {state.policy}, but no policy skips a gap of over {MAX_GAP:,} seqs."
    elif state.waiting_since is None:
        yield f"Gap policy: {state.policy}. The next sweep starts the clock."
    else:
        due = state.waiting_since + after
        when = f"at {moment(due)}, in {age(due - now)}." if due > now else "with the next sweep; does the sweep run?"
        yield f"Gap policy: {state.policy}. It acts {when}"


def _stray(state: QueueState) -> int | None:
    """Return the lowest message beyond a gap too long; None if nobody can withdraw it: it follows a skipped seq."""
    skipped = set(state.skipped)
    gaps = list(dropwhile(lambda gap: length(gap) <= MAX_GAP, state.gaps))
    for gap, following in zip_longest(gaps, gaps[1:]):
        if gap.stop not in skipped:
            return gap.stop
        if following is None or not skipped.issuperset(range(gap.stop, following.start)):
            return None
    return None


def _is_held_by_a_long_gap(state: QueueState) -> bool:
    """Return True if nothing but skipped seqs lies between the position and a gap that no policy skips."""
    stray = stray_of(state.gaps)
    if stray is None:
        return False
    missing = sum(length(gap) for gap in state.gaps if gap.stop <= stray)
    skipped = sum(state.position < seq < stray for seq in state.skipped)
    return stray - state.position - 1 == missing + skipped


def _kept(state: QueueState) -> Iterator[str]:
    known = "" if state.complete else "at least "
    if state.withdrawn:
        yield f"Withdrawn before: {counted(state.withdrawn, 'message')}."
    if state.skipped:
        yield f"Skipped before: {known}{counted(len(state.skipped), 'seq')}; {len(state.late):,} of them came late."


def _search(state: QueueState, command: CommandText, *, may_be_opened: bool) -> Iterator[str]:
    """Say where a missing message may be, and what is given up by the commands that go on without it."""
    if not state.gaps or length(state.gaps[0]) > MAX_GAP:
        return
    refused = command("dead-letters", "list")
    yield f"If it was refused, it is among the dead letters of the stack: {refused}. If not, have it sent again."
    yield "Skip only what will never come: if it comes after all, it is not delivered."
    if may_be_opened:
        first = state.gaps[0].stop
        yield f"Open the queue at seq {first} only if its producer begins there: lower seqs are refused from then on."


def _consumption(reader: QueueReader, first_seq: int, now: float, own: OwnConsumer | None) -> Iterator[str]:
    if reader.state == NOT_BEGUN and own is not None:
        yield f"Consumer {reader.name!r} has not begun" + (f": {own.due(reader.lag)}." if reader.lag else " anywhere.")
        return
    who, behind = f"Consumer {reader.name!r}", f"{counted(reader.lag, 'seq')} behind"
    if reader.checkpoint is not None and reader.checkpoint >= first_seq:
        yield f"{who} is {behind if reader.lag else 'up to date'} (seq {reader.checkpoint})."
    else:
        at = "has not begun here" if reader.checkpoint is None else "has done nothing yet"
        yield f"{who} {at}; " + (f"it is {behind}." if reader.lag else "nothing is due.")
    if reader.state == PARKED and reader.parked is not None:
        yield f"{who} {_parked(reader.parked, now)}"
    elif reader.parked is not None:
        yield f"{who} {_guarded(reader.parked, now)}"
    elif reader.due_since is not None:
        yield f"{who} {_activity(reader, reader.due_since, now)}"
        if reader.state == STUCK and own is not None and own.name == reader.name:
            yield f"Its log says if its process dies of a message, in whatever queue: {own.logs}"
    if reader.dead_letters:
        yield f"{who} keeps {counted(len(reader.dead_letters), 'dead letter')}: {_places(reader.dead_letters)}."


def _activity(reader: QueueReader, due_since: float, now: float) -> str:
    """Tell a consumer that is behind and works from one that is stuck."""
    committed = None if reader.committed_at is None else age(max(0.0, now - reader.committed_at))
    if reader.state == WORKING:
        began = f"it began {age(max(0.0, now - (reader.began_at or now)))} ago"
        return f"is working, {began if committed is None else f'last commit {committed} ago'}."
    due = f"seq {reader.due} is due for {age(max(0.0, now - due_since))}"
    if reader.state != STUCK:
        return f"is about to begin: {due}."
    last = "it never committed here" if committed is None else f"its last commit was {committed} ago"
    return f"is stuck: {due}, and {last}. It does not run, or one batch takes it that long."


def _guarded(parked: Parked, now: float) -> str:
    again = "" if parked.next_try is None else f" If its process dies, it is tried again at {moment(parked.next_try)}."
    return f"is working on seq {parked.seq}, {_since(parked.since, now)}.{again}"


def _parked(parked: Parked, now: float) -> str:
    again = "it is not tried again automatically"
    if parked.next_try is not None:
        again = f"next try at {moment(parked.next_try)}"
    return (
        f"is parked at seq {parked.seq}, {_since(parked.since, now)}, "
        f"after {counted(parked.attempts, 'attempt') if parked.attempts else 'no attempt that counts'}; "
        f"{again}: {parked.error}"
    )


def _places(letters: list[DeadLetter]) -> str:
    first = ", ".join(str(letter.seq) for letter in letters[:SHOWN])
    return f"seq {first}" + (", ..." if len(letters) > SHOWN else "")


def _queue_commands(state: QueueState, command: CommandText, *, may_be_opened: bool) -> Iterator[str]:
    if state.gaps:
        if may_be_opened:
            yield command("open", state.queue, options=["--first-seq", str(state.gaps[0].stop)])
        if length(state.gaps[0]) <= MAX_GAP:
            yield command("skip", state.queue, seqs_text(state.gaps[:1]))
        if (stray := _stray(state)) is not None:
            yield command("withdraw", state.queue, str(stray))
    elif state.stored_beyond:
        yield command("advance", state.queue)


def _consumer_commands(readers: list[QueueReader], queue: str, command: CommandText) -> Iterator[str]:
    for reader in readers:
        if reader.state == PARKED and reader.parked is not None and not reader.parked.damaged:
            yield command("parked", "redrive", queue, options=["--consumer", reader.name])
        elif reader.dead_letters:
            yield command("dead", "redrive", queue, options=["--consumer", reader.name])
    if any(reader.state == STUCK for reader in readers):
        yield command("nudge", queue)


def _may_be_opened(sources: Sources, state: QueueState) -> bool:
    """Return True if nothing was released yet, it was not opened before, and what waits is the first that is stored."""
    if not state.gaps or length(state.gaps[0]) > MAX_GAP:
        # Behind a longer gap the message is likely a mistake: nobody is led to open the queue there, for good.
        return False
    if state.position >= state.first_seq or state.first_seq != sources.first_seq:
        return False
    return [seqs.start for seqs in sources.items.look(state.queue, MIN_SEQ - 1, 1).slots] == [state.gaps[0].stop]


def _since(then: float, now: float) -> str:
    return f"since {moment(then)} ({age(max(0.0, now - then))})"
