"""OrderedConsumer: settings in, a wired consumer out."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self, Unpack

from stream_sort.consume.consumer import Consumer
from stream_sort.consume.context import ConsumerContext, DeliveryTerms, Nudger
from stream_sort.consume.handler import check_handler, no_handler
from stream_sort.consume.registration import Registration
from stream_sort.errors import SettingsError, shown
from stream_sort.model.consumption import check_consumer, check_start
from stream_sort.settings import PREFIX, ConsumerSettings, Settings
from stream_sort.sorter import Sorter
from stream_sort.stream_sorter import StreamSorter

if TYPE_CHECKING:
    from typing import TypedDict

    from stream_sort.consume.handler import Handler
    from stream_sort.consume.push import Pace
    from stream_sort.ports import Waker

    class Delivery(TypedDict, total=False):
        """How a consumer delivers; see OrderedConsumer."""

        batch_size: int
        max_attempts: int
        on_poison: str
        start: str | int
        retry_queue_url: str
        waker: Waker
        pace: Pace


class OrderedConsumer(Consumer):
    """Hands every queue's messages to `handler`, in order, nothing missing.

    `handler(batch)` gets up to `batch_size` messages of one queue. It may raise, return the last seq it did, or raise
    PartlyDone with it; TryLater says that no message is at fault. Whatever it writes through `batch.transaction`
    happens exactly once.

    `start` counts when a consumer of this name first runs. It is kept in the control table, and from then on another
    one is ignored: see the property `start`; in Lambda the logs say so. Take another name to start elsewhere.
    """

    def __init__(  # noqa: PLR0913  # the public contract: each is a keyword with a default
        self,
        name: str,
        handler: Handler | None = None,
        *,
        sorter: Sorter | None = None,
        control_table: str = "Control",
        batch_size: int = 100,
        max_attempts: int = 5,
        on_poison: str = "park",
        start: str | int = "earliest",
        retry_queue_url: str = "",
        waker: Waker | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Wire a consumer; the sorter is that of the environment when none is given.

        Without a handler it can be asked, and messages discarded, but nothing delivered.
        """
        settings = ConsumerSettings(
            control_table=control_table,
            consumer=check_consumer(name),
            batch_size=batch_size,
            max_attempts=max_attempts,
            on_poison=on_poison,
            start=check_start(start),
            retry_queue_url=retry_queue_url,
        )
        sorter = StreamSorter.from_env() if sorter is None else sorter
        if not isinstance(sorter, Sorter):
            raise SettingsError(f"sorter is {shown(sorter)}; it must be a StreamSorter")
        self._sorter = sorter
        self._settings = settings
        self._control = sorter.homes.only.control(control_table)
        context = ConsumerContext(
            terms=DeliveryTerms(name, batch_size, max_attempts, on_poison == "dead_letter", settings.start),
            queues=sorter.queues,
            checkpoints=self._control.checkpoints,
            dead_letters=self._control.dead_letters,
            handler=no_handler if handler is None else check_handler(handler),
            waker=waker or self._waker(),
            clock=sorter.clock,
            new_run=lambda: uuid.uuid4().hex,
        )
        registration = Registration(
            self._control.subscriptions, context.checkpoints, sorter.homes.only.cursors, sorter.clock, sorter.in_flight
        )
        super().__init__(context, registration, pace)
        self._process: Any = None

    @classmethod
    def from_env(cls, handler: Handler | None = None, *, sorter: Sorter | None = None) -> Self:
        """Wire a consumer as the STREAM_SORT_* variables say."""
        given = asdict(ConsumerSettings.from_env())
        return cls(given.pop("consumer"), handler, sorter=sorter, **given)

    @classmethod
    def from_stack(  # noqa: PLR0913  # the public contract: each is a keyword with a default
        cls,
        stack: str,
        handler: Handler | None = None,
        *,
        consumer: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        endpoint_url: str | None = None,
        session: Any = None,
        client: Any = None,
        **own: Unpack[Delivery],
    ) -> Self:
        """Wire a consumer to the tables of a deployed stack; where to look is said as for StreamSorter.from_stack.

        It is the consumer that the stack has (its parameter Consumer, `process` by default), with its batch size,
        attempts, poison policy and start, unless they are given. That one and the stack's own function share a
        checkpoint: each message goes to one of them. Take another name, `consumer`, for a reader of your own.
        """
        from stream_sort.aws.accounts import named_stack  # noqa: PLC0415  # boto3 is loaded here, not by `import stream_sort`

        access = {"region": region, "profile": profile, "endpoint_url": endpoint_url, "session": session}
        found, place = named_stack(stack, **access, client=client)
        known = found.variables()
        if PREFIX + "CONTROL_TABLE" not in known:
            raise SettingsError(f"stack {stack!r}: it has no output ControlTable; is it a stack of stream_sort?")
        settings, given = Settings.from_env(known), asdict(ConsumerSettings.from_env(known))
        sorter = StreamSorter(**asdict(settings), client=client or place.dynamodb(settings))
        name = given.pop("consumer")
        return cls(consumer or name, handler, sorter=sorter, **{**given, **own})

    @property
    def asked_start(self) -> str:
        """The `start` it was given."""
        return self._settings.start

    @property
    def start(self) -> str:
        """Where it starts in queues that it has no checkpoint in; once it has run, as it was first registered."""
        return self._context.terms.start

    def create_tables(self) -> None:
        """Create the control table if it is not there, and wait for it; for local use and tests."""
        self._control.create_table()

    def lambda_handler(self, event: Any, context: Any) -> dict[str, Any]:
        """Handle the wakes of an event: records of the cursor table's stream, or of the retry queue.

        `{"redrive": {"queue": "..."}}` or `{"redrive": "parked"}` tries again what is parked; the answer says what came
        of it.
        """
        self._check_handler()
        if self._process is None:
            # Powertools is loaded here: who calls catch_up has no use for it.
            from stream_sort.aws_lambda.process import ProcessStep  # noqa: PLC0415

            self._process = ProcessStep.of(self, self._sorter)
        answer: dict[str, Any] = self._process(event, context)
        return answer

    def _waker(self) -> Waker:
        if not self._settings.retry_queue_url:
            return Nudger(self._sorter.queues)
        # boto3 is loaded here, not by `import stream_sort`.
        from stream_sort.aws.sqs import RetryQueue  # noqa: PLC0415

        return RetryQueue(self._settings.retry_queue_url, self._settings.consumer)
