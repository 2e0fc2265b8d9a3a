"""CloudFormation as one who asks for a stack sees it, over HTTP; moto's needs more than the rest of the suite."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTPUTS = {"ItemsTable": "its", "CursorTable": "crs", "ControlTable": "ctl", "ProcessFunction": "prc"}
PARAMETERS = {"QueueKey": "lane", "SeqKey": "n", "FirstSeq": "5", "GapPolicy": "wait"}


@dataclass
class Account:
    """The one stack, mine, and what CloudFormation says instead of it, as (HTTP status, code, text)."""

    endpoint: str
    outputs: dict[str, str] = field(default_factory=lambda: dict(OUTPUTS))
    parameters: dict[str, str] = field(default_factory=lambda: dict(PARAMETERS))
    status: str = "CREATE_COMPLETE"
    refusal: tuple[int, str, str] | None = None
    asked: int = 0

    def answer(self, name: str) -> tuple[int, str]:
        self.asked += 1
        if self.refusal is None and name == "mine":
            return 200, self._described()
        status, code, text = self.refusal or (400, "ValidationError", f"Stack with id {name} does not exist")
        said = f"<Code>{code}</Code><Message>{text}</Message>"
        return status, f"<ErrorResponse><Error>{said}</Error></ErrorResponse>"

    def _described(self) -> str:
        outputs, parameters = _members("Output", self.outputs), _members("Parameter", self.parameters)
        members = f"<Outputs>{outputs}</Outputs><Parameters>{parameters}</Parameters>"
        named = f"<StackName>mine</StackName><StackStatus>{self.status}</StackStatus>"
        result = f"<DescribeStacksResult><Stacks><member>{named}{members}</member></Stacks></DescribeStacksResult>"
        return f"<DescribeStacksResponse>{result}</DescribeStacksResponse>"


def _members(kind: str, values: dict[str, str]) -> str:
    pairs = (f"<{kind}Key>{name}</{kind}Key><{kind}Value>{value}</{kind}Value>" for name, value in values.items())
    return "".join(f"<member>{pair}</member>" for pair in pairs)


@contextmanager
def an_account() -> Iterator[Account]:
    """CloudFormation on a port of its own."""

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            status, text = account.answer(asked["StackName"][0])
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    account = Account(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield account
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
