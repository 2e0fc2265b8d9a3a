"""What a period's counts come to, in words: the same on the page and on the screen, and where they are not all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.insight.wording import age, counted, moment

if TYPE_CHECKING:
    from stream_sort.insight.report import Findings


def period_text(findings: Findings) -> str:
    """Name the period."""
    return f"last {span_text(findings.now - findings.begin)}"


def span_text(seconds: float) -> str:
    """Name a length of time."""
    return age(seconds).replace(".0 ", " ")


def traffic_text(findings: Findings) -> str:
    """Say how many messages came and went in the period, in whole sentences."""
    traffic = findings.traffic
    arrived, released, skipped = traffic.totals
    least = "" if traffic.is_complete else "at least "
    told = [f"{counted(arrived, 'message')} arrived", f"{released:,} {_was(released)} released"]
    told += [f"{counted(skipped, 'seq')} {_was(skipped)} skipped"] if skipped else []
    where = f"In the {period_text(findings)}, in {_all(findings.verdict.queues)}"
    sentences = [f"{where}: {least}{', '.join(told[:-1])} and {told[-1]}."]
    if traffic.is_complete and not any(traffic.totals):
        sentences = [f"No message arrived and no seq was skipped in the {period_text(findings)}."]
    if traffic.cut_short:
        since = f"All is counted since {moment(traffic.complete_since)} only"
        if traffic.complete_since >= traffic.end:
            since = "Not all is counted"
        spent = f"{counted(findings.bounds.reads, 'read')} {_was(findings.bounds.reads)} not enough"
        of_all = f"{traffic.cut_short:,} of {counted(traffic.active, 'active queue')}"
        sentences.append(f"{since}: {spent} for {of_all}. Give more with --reads, or a shorter --period.")
    if traffic.trimmed:
        sentences.append(f"What was trimmed in {counted(traffic.trimmed, 'queue')} meanwhile is not counted.")
    return " ".join(sentences)


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _all(queues: int) -> str:
    return "the one queue" if queues == 1 else f"all {queues:,} queues"
