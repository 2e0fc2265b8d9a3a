"""A backfill in which Ctrl-C is pressed in calls to Java: the first of each method that the first argument names."""

from __future__ import annotations

import os
import signal
import sys
import threading

from py4j.clientserver import ClientServerConnection

from stream_sort.replay.backfill.job import main

LEFT = sys.argv[1].split()
SEND = ClientServerConnection.send_command


def send_and_press(connection: ClientServerConnection, command: str) -> str:
    """For Java, a call is a line with the name of its method."""
    lines = command.split("\n")
    for method in [method for method in LEFT if method in lines]:
        if threading.current_thread() is threading.main_thread():
            LEFT.remove(method)
            os.kill(os.getpid(), signal.SIGINT)
    answer: str = SEND(connection, command)
    return answer


if __name__ == "__main__":
    ClientServerConnection.send_command = send_and_press
    sys.exit(main(sys.argv[2:]))
