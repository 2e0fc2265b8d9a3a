"""Ask AWS what `doctor` wants to know: what is refused says which permission it takes, what is not there is None."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.formats.terminal_text import shell_word
from stream_sort.insight.checkup.aws import Unanswered

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.aws.accounts import AwsPlace

TRIES = 4
FIRST_PAUSE = 0.5
READ_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class AwsReader:
    """Asks any service of AWS at a place, again where it is throttled. Reads only."""

    place: AwsPlace
    sleep: Callable[[float], None] = time.sleep
    clients: dict[str, Any] = field(default_factory=dict)

    def ask(self, service: str, method: str, **request: Any) -> dict[str, Any] | None:
        """Return what AWS answers; None if there is no such thing, Unanswered if it does not say."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  # as all imports of commands

        from stream_sort.aws.errors import NOT_THERE, code_of, is_retryable  # noqa: PLC0415

        for left in reversed(range(TRIES)):
            try:
                answer: dict[str, Any] = getattr(self._client(service), method)(**request)
            except (BotoCoreError, ClientError) as error:
                if code_of(error) in NOT_THERE:
                    return None
                # What cannot be reached now cannot be in a second, and there is much to ask.
                if not (isinstance(error, ClientError) and is_retryable(error) and left):
                    raise Unanswered(_why(error, service, method)) from error
                self.sleep(FIRST_PAUSE * (TRIES - left))
            else:
                return answer
        raise AssertionError("the last try answers or raises")

    def command(self, *words: str) -> str:
        """Return a command of the AWS command line, with the options that lead to the same place."""
        place = self.place
        named = {"--profile": place.profile, "--region": place.region, "--endpoint-url": place.endpoint_url}
        options = [word for name, value in named.items() if value for word in (name, value)]
        keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY") if place.key else ()
        before = "".join(f"{name}={place.key} " for name in keys)
        return before + " ".join(map(shell_word, ("aws", *words, *options)))

    def _client(self, service: str) -> Any:
        if service not in self.clients:
            self.clients[service] = self.place.client(service, read_timeout=READ_TIMEOUT)
        return self.clients[service]


def _why(error: Exception, service: str, method: str) -> str:
    from stream_sort.aws.errors import is_denied  # noqa: PLC0415  # as all imports of commands

    name = f"{service}:{''.join(part.title() for part in method.split('_'))}"
    if is_denied(error):
        return f"needs {name}"
    return f"{name} did not answer: {error}"
