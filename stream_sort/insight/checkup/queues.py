"""What is wrong with queues and consumers, and the command that helps each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.insight.checkup.finding import Finding, fail, first_of, warn
from stream_sort.insight.overview import lag_of
from stream_sort.insight.wording import age, counted
from stream_sort.model.gap_policy import MAX_GAP
from stream_sort.model.gaps import length
from stream_sort.model.retries import is_trouble

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.insight.checkup.standing import Standings
    from stream_sort.insight.wording import CommandText
    from stream_sort.model.consumption import Checkpoint, Parked
    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.records import Cursor

AREA, CONSUMERS = "queues", "consumers"
# A consumer that has done nothing for so long, although something is released, has missed its wakes.
ASLEEP = 600.0
# The sweep runs every minute; so much later a policy should have acted.
SLACK = 300.0
REPAIR_OR_DELETE = (
    "repair that row: start (text: earliest, latest or a seq, as it was), since (a number), ready (true). Delete it "
    "only if no such consumer runs any more: no trim waits for it then, and one that starts at latest passes messages "
    "over"
)


def check_queues(found: Standings, old_gap: float, command: CommandText) -> Iterator[Finding]:
    """Find queues that are stuck, whose items are lost, or that wait for long."""
    many = counted(len(found.rows), "queue")
    yield from _stuck(found, many, command)
    yield from _hollow(found, many, command)
    yield from _lost(found, command)
    yield from _waiting(found, old_gap, command)
    for queue, error in found.failed:
        yield fail(AREA, f"{queue!r} could not be looked at: {error}", command("explain", queue))


def check_consumers(found: Standings, command: CommandText) -> Iterator[Finding]:
    """Find consumers that are ahead of a position, parked, or asleep."""
    yield from _ahead(found, command)
    yield from _parked(found, command)
    yield from _asleep(found, command)
    for name, error in found.unreadable.items():
        yield fail(CONSUMERS, f"{name!r} could not be looked at: {error}", REPAIR_OR_DELETE)
    for consumer, page in found.dead.items():
        if page.dead:
            known = "at least " if page.next is not None else ""
            show = command("dead", "list", options=["--consumer", consumer.name])
            yield warn(CONSUMERS, f"{consumer.name!r} keeps {known}{counted(len(page.dead), 'dead letter')}", show)


def _stuck(found: Standings, many: str, command: CommandText) -> Iterator[Finding]:
    each = [
        fail(
            AREA,
            f"{row.queue!r} is stuck: seq {row.position + 1} is stored, and its position stays {row.position}",
            command("advance", row.queue),
        )
        for row in found.stuck
    ]
    more = fail(AREA, f"{len(each):,} queues are stuck in all", command("advance", options=["--all"]))
    yield from first_of(each, more, f"none of {many} holds back what it could release")


def _hollow(found: Standings, many: str, command: CommandText) -> Iterator[Finding]:
    audit = f"{command('audit', options=['--out', 'report.json'])} names all that is missing"
    each = [
        fail(
            AREA,
            f"{row.queue!r} is released through seq {row.position}, but that is not stored: items are lost",
            f"put what is missing again: {command('explain', row.queue)} names it, {audit} anywhere",
        )
        for row in found.hollow
    ]
    more = fail(AREA, f"{len(each):,} queues have lost items in all; was the items table restored?", audit)
    yield from first_of(each, more, f"the message at the position of each of {many} is there")


def _lost(found: Standings, command: CommandText) -> Iterator[Finding]:
    each = [
        fail(
            AREA,
            f"{one.queue!r} has lost its cursor row: nothing can be stored in it or released until the row is restored",
            command("recover", one.queue),
        )
        for one in found.lost
    ]
    more = fail(AREA, f"{len(each):,} queues have lost their cursor rows in all", "restore the cursor table")
    yield from first_of(each, more if found.checkpoints else None, "no consumer misses a cursor row")


def _waiting(found: Standings, old_gap: float, command: CommandText) -> Iterator[Finding]:
    each = []
    for row in found.waiting:
        policy = row.policy or found.gap_policy
        waited = found.now - (row.gap_since or found.now)
        told = f"{row.queue!r} has waited for seq {row.position + 1} for {age(waited)}; gap policy: {policy}"
        each.append(warn(AREA, told + _overdue(row, policy, waited), command("explain", row.queue)))
    more = warn(AREA, f"{len(each):,} queues have waited for long in all", command("status"))
    yield from first_of(each, more, _patient(found, old_gap, command))


def _patient(found: Standings, old_gap: float, command: CommandText) -> str:
    """Say what is so where nobody has waited for long."""
    marked = [row for row in found.rows.values() if row.gap_since is not None]
    # One that moved since it was marked may be done with its gap; beyond so many, the next sweep will tell.
    unsettled = [row for row in marked if row.queue not in found.settled]
    doubtful = sum(row.in_doubt for row in unsettled)
    certain = len(unsettled) - doubtful + sum(one.since is not None for one in found.settled.values())
    if not doubtful and not certain:
        return "no queue waits for a seq"
    told = f"{counted(certain, 'queue')} {'waits' if certain == 1 else 'wait'} for a seq"
    perhaps = f" and {doubtful:,} may" if doubtful else ""
    return f"{told}{perhaps}, none for over {age(old_gap)}: {command('status')}"


def _overdue(row: Cursor, policy: GapPolicy, waited: float) -> str:
    late = policy.skip_after is not None and waited > policy.skip_after + SLACK
    if late and row.gap is not None and row.is_measured and length(row.gap.seqs) > MAX_GAP:
        return f", but no policy skips a gap of over {MAX_GAP:,} seqs"
    return ", which should have acted by now: does the sweep run?" if late else ""


def _ahead(found: Standings, command: CommandText) -> Iterator[Finding]:
    each = [
        fail(
            CONSUMERS,
            f"{one.consumer!r} has done everything through seq {one.seq} of {one.queue!r}, whose position is "
            f"{found.rows[one.queue].position}: the cursor table is older than the control table",
            f"release what is stored again; nothing is delivered twice: {command('advance', one.queue)}",
        )
        for one in found.ahead
    ]
    release = command("advance", options=["--all"])
    more = fail(CONSUMERS, f"{len(each):,} checkpoints are ahead in all", release)
    yield from first_of(each, more if found.checkpoints else None, "no checkpoint is ahead of its queue's position")


def _parked(found: Standings, command: CommandText) -> Iterator[Finding]:
    kept = [one for rows in found.checkpoints.values() for one in rows.values()]
    each = [
        _parked_one(one, one.parked, command)
        for one in kept
        if one.parked is not None and is_trouble(one.parked, found.now)
    ]
    more = warn(CONSUMERS, f"{len(each):,} are parked in all", command("parked", "list"))
    yield from first_of(each, more if found.checkpoints else None, "nothing is parked")


def _parked_one(one: Checkpoint, parked: Parked, command: CommandText) -> Finding:
    again = "" if parked.next_try is not None else ", and is not tried again automatically"
    told = f"{one.consumer!r} is parked at seq {parked.seq} of {one.queue!r}{again}: {parked.error}"
    if parked.damaged:
        return fail(CONSUMERS, told, command("explain", one.queue))
    redrive = command("parked", "redrive", one.queue, options=["--consumer", one.consumer])
    return warn(CONSUMERS, told, f"fix the cause, then: {redrive}")


def _asleep(found: Standings, command: CommandText) -> Iterator[Finding]:
    each = []
    for consumer, rows in found.checkpoints.items():
        for row in found.rows.values():
            one = rows.get(row.queue)
            lag = lag_of(row, consumer, one)
            last = max(row.moved_at or 0.0, (one.committed_at if one else None) or 0.0)
            if lag and (one is None or one.parked is None) and found.now - last > ASLEEP:
                told = f"{consumer.name!r} is {counted(lag, 'seq')} behind in {row.queue!r} and has not moved for "
                each.append(warn(CONSUMERS, told + age(found.now - last), command("nudge", row.queue)))
    wake = command("nudge", options=["--all"])
    more = warn(CONSUMERS, f"consumers sleep in {len(each):,} queues in all", wake)
    yield from first_of(each, more if found.checkpoints else None, "no consumer sleeps while something is due")
