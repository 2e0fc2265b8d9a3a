"""A way to a local AWS on which writes to one table can be throttled: it has no throttling of its own."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITES = ("PutItem", "BatchExecuteStatement", "UpdateItem")
REFUSAL = {
    "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    "message": "The level of configured provisioned throughput for the table was exceeded.",
}


# DynamoDB names the request in each answer; one that does not is taken for somebody else's.
KEPT = {"content-type", "x-amzn-requestid"}


class Throttle:
    """Hands every request on, but refuses writes that name the table while there is one; `refused` counts them."""

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.table: str | None = None
        self.refused = 0
        self.url = ""

    def refuses(self, operation: str, body: bytes) -> bool:
        name = operation.rpartition(".")[2]
        return self.table is not None and name in WRITES and self.table.encode() in body

    @contextmanager
    def open(self) -> Iterator[Throttle]:
        """Serve until the block ends."""
        with ThreadingHTTPServer(("127.0.0.1", 0), _handler(self)) as server:
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            self.url = f"http://127.0.0.1:{server.server_port}"
            yield self
            server.shutdown()
            thread.join()


def _handler(throttle: Throttle) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if throttle.refuses(self.headers.get("X-Amz-Target") or "", body):
                throttle.refused += 1
                headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-requestid": "refused"}
                self._answer(400, json.dumps(REFUSAL).encode(), headers)
                return
            way = HTTPConnection(throttle.target.hostname or "", throttle.target.port, timeout=60)
            way.request(self.command, self.path, body, dict(self.headers))
            answer = way.getresponse()
            told = answer.read()
            kept = {name: value for name, value in answer.getheaders() if name.lower() in KEPT}
            self._answer(answer.status, told, kept)
            way.close()

        do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815  # as http.server names them

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
