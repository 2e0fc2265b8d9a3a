"""Going through a queue of refused events that come into sight again while the command is at work."""

from __future__ import annotations

from typing import Any

from stream_sort.cli.refused import QueueSource
from stream_sort.insight.checkup.resources import WORK
from stream_sort.model.message import KeyNames


class Letters:
    """An SQS queue of letters that nobody deletes; what is hidden comes back in time, and is then handed out first."""

    def __init__(self, count: int) -> None:
        self.now = 0.0
        self._shown_at = dict.fromkeys(range(count), 0.0)

    def receive_message(self, VisibilityTimeout: int, **_: Any) -> dict[str, Any]:  # noqa: N803  # as boto3 names it
        self.now += 0.1
        visible = [one for one, at in self._shown_at.items() if at <= self.now]
        page = sorted(visible, key=lambda one: (self._shown_at[one] == 0.0, one))[:10]
        self._shown_at |= dict.fromkeys(page, self.now + VisibilityTimeout)
        return {"Messages": [self._letter(one) for one in page]}

    def _letter(self, number: int) -> dict[str, str]:
        return {"MessageId": str(number), "ReceiptHandle": f"{number}@{self.now}", "Body": '{"queue":"q","seq":1}'}


def test_letters_that_come_into_sight_again_keep_none_from_being_looked_at() -> None:
    letters = Letters(600)
    seen = []
    for one in QueueSource("EnqueueDeadLetters", "url", letters, KeyNames()).kept(WORK):
        seen.append(one.id)
        if len(seen) % 100 == 0:
            # A slow table: what was looked at first is in sight again before all are.
            letters.now += 160.0
    assert sorted(map(int, seen)) == list(range(600))


def test_a_queue_that_hands_out_the_same_letters_for_ever_is_left_in_the_end() -> None:
    source = QueueSource("EnqueueDeadLetters", "url", Letters(50), KeyNames())
    assert [one.id for one in source.kept(0)] == [str(number) for number in range(10)]
