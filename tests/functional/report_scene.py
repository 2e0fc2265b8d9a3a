"""A stack with something of everything, hours old, for the page of `stream-sort report`; and that page, taken apart."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from stream_sort import OrderedConsumer, Pace, StreamSorter
from stream_sort.model.consumption import Wake
from stream_sort.testing.clock import MovableClock

if TYPE_CHECKING:
    from stream_sort import Batch

# What a queue may be called: names that are markup, formulas, other scripts, or long.
HOSTILE = (
    "<script>window.owned = 1; alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</title></style><svg onload=alert(3)>",
    "&lt;b&gt; &amp; $\\frac{1}{",
    "' onmouseover='alert(4)",
    "\u202egnp.evil 😀 שלום",
    "x" * 1_000,
)
# Only others, who write to the tables themselves, can call a queue so.
WRITTEN_PAST_US = "bell\x07 and\x1b[2J\x00 \ufeff"
POISON = "no such account: <img src=x onerror=alert(5)>"
STEP = 60.0


class Scene:
    """Queues of which the first has a gap, the second is parked, the third skipped a seq, and one is far behind."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.clock = MovableClock(time.time() - 45 * STEP)
        self.sorter = StreamSorter(client=client, clock=self.clock, in_flight=1, deadline=0.02)
        pace = Pace(sleep=lambda _: None)
        self.billing = self.hire("billing", "park")
        self.billing.create_tables()
        self.archive = OrderedConsumer("archive", lambda _: None, sorter=self.sorter, pace=pace)
        self.poison: set[tuple[str, int]] = set()

    def hire(self, name: str, on_poison: str) -> OrderedConsumer:
        """A consumer that trips over what is poison."""
        pace = Pace(sleep=lambda _: None)
        return OrderedConsumer(name, self.handle, sorter=self.sorter, on_poison=on_poison, max_attempts=1, pace=pace)

    def handle(self, batch: Batch) -> None:
        for message in batch:
            if (batch.queue, message["seq"]) in self.poison:
                raise ValueError(POISON)

    def put(self, queue: str, *seqs: int) -> None:
        """One message a minute."""
        for seq in seqs:
            self.clock.move(STEP)
            self.sorter.put({"queue": queue, "seq": seq, "text": "</script>"})

    def play(self) -> None:
        self.put("gapped", 0, 1, 4, 5, 6)
        self.poison.add(("stuck", 2))
        self.put("stuck", 0, 1, 2, 3)
        self.put("mended", 0, 2, 3, 1, 5)
        self.clock.move(STEP)
        self.sorter.skip("mended", 4, "given up")
        self.put("behind", *range(10))
        self.put("half", *range(5))
        self.archive.process([Wake(name) for name in ("stuck", "gapped", "mended", "half")])
        self.billing.process([Wake("stuck"), Wake("gapped"), Wake("mended")])

    def add_hostile(self) -> None:
        self.poison.add((HOSTILE[0], 0))
        for name in HOSTILE:
            self.sorter.put_many({"queue": name, "seq": seq} for seq in (0, 2))
        self.billing.process([Wake(name) for name in HOSTILE[:2]])
        row = {"queue": {"S": WRITTEN_PAST_US}, "seq": {"N": "3"}, "_ss_first_seq": {"N": "0"}}
        self.client.put_item(TableName="Cursor", Item=row)


class TakenApart(HTMLParser):
    """The elements, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
