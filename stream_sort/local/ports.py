"""Which port of this machine to listen on."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from stream_sort.errors import PortTaken
from stream_sort.local.tools import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator

# Where AWS emulators listen by custom.
USUAL_PORT = 4566


def choose_port(wanted: int | None, last: int) -> int:
    """The wanted port, or PortTaken; with no wish the last one, the usual one, or any."""
    if wanted is None:
        return next(filter(is_free, _candidates(last)))
    if not is_free(wanted):
        raise PortTaken(wanted)
    return wanted


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Return True if nobody listens on a port now."""
    with socket.socket() as probe:
        if probe.connect_ex((HOST, port)) == 0:
            return False
    with socket.socket() as probe:
        # As servers do: what a closed connection left behind does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _candidates(last: int) -> Iterator[int]:
    yield from filter(None, (last, USUAL_PORT))
    while True:
        yield free_port()
