"""A traced function tells X-Ray of each call it makes to AWS."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

SCRIPT = """
from types import SimpleNamespace
from moto import mock_aws
from stream_sort import StreamSorter
from stream_sort.aws_lambda.enqueue import EnqueueStep
from stream_sort.aws_lambda.telemetry import Telemetry

with mock_aws():
    sorter = StreamSorter()
    sorter.create_tables()
    enqueue = EnqueueStep(sorter, Telemetry("enqueue"))
    enqueue({"queue": "q", "seq": 0}, SimpleNamespace(aws_request_id="1"))
"""


def calls_traced(switch: str) -> list[str]:
    """The operations that a run of enqueue sends to the daemon of X-Ray, which is a socket of ours."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as daemon:
        daemon.bind(("127.0.0.1", 0))
        daemon.settimeout(0.2)
        environment = {
            "PATH": os.environ["PATH"],
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "y",
            "AWS_XRAY_DAEMON_ADDRESS": f"127.0.0.1:{daemon.getsockname()[1]}",
            "LAMBDA_TASK_ROOT": "/var/task",
            "_X_AMZN_TRACE_ID": "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
            "STREAM_SORT_TRACING": switch,
        }
        subprocess.run([sys.executable, "-c", SCRIPT], check=True, env=environment, timeout=120, capture_output=True)
        found = []
        try:
            while True:
                _header, _, document = daemon.recv(65_536).partition(b"\n")
                found.append(json.loads(document).get("aws", {}).get("operation"))
        except TimeoutError:
            return found


def test_the_calls_of_a_traced_function_are_told_to_x_ray() -> None:
    assert "PutItem" in calls_traced("on")


def test_a_function_that_is_not_traced_tells_nothing() -> None:
    assert calls_traced("off") == []
