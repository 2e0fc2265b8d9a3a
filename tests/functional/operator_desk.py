"""The command line on tables of moto's, and a Lambda endpoint behind which a real consumer redrives."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from stream_sort import OrderedConsumer, Pace
from stream_sort.aws_lambda.redrives import RedriveRequest, redrive, wanted_by
from stream_sort.cli.app import app
from stream_sort.model.consumption import Wake
from tests.consumers import Clerk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result

    from stream_sort import StreamSorter

WHERE = {
    "STREAM_SORT_ITEMS_TABLE": "Items",
    "STREAM_SORT_CURSOR_TABLE": "Cursor",
    "STREAM_SORT_CONTROL_TABLE": "Control",
    "STREAM_SORT_CONSUMER": "billing",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "y",
    "NO_COLOR": "1",
}


class OperatorDesk:
    """Queues, one consumer, and the command line to look after them."""

    def __init__(self, sorter: StreamSorter) -> None:
        self.sorter = sorter
        self.clerk = Clerk()
        self.env = dict(WHERE)
        self.consumer = self.hire("park")
        self.consumer.create_tables()

    def hire(self, on_poison: str, name: str = "billing") -> OrderedConsumer:
        pace = Pace(sleep=lambda _: None)
        return OrderedConsumer(name, self.clerk, sorter=self.sorter, on_poison=on_poison, max_attempts=1, pace=pace)

    def put(self, queue: str, *seqs: int, **fields: Any) -> None:
        for seq in seqs:
            self.sorter.put({"queue": queue, "seq": seq, **fields})

    def deliver(self, *queues: str) -> None:
        self.consumer.process([Wake(queue) for queue in queues])

    def bury(self, queue: str, *seqs: int) -> None:
        """Make messages of a queue dead letters."""
        self.clerk.poison |= set(seqs)
        self.consumer = self.hire("dead_letter")
        self.deliver(queue)

    def run(self, *arguments: str, answer: str | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), env=self.env, input=answer)

    def told(self, *arguments: str) -> Any:
        """What a command says in JSON."""
        done = self.run(*arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    @contextmanager
    def function(self) -> Iterator[None]:
        """A Lambda endpoint whose only function is the consumer."""
        desk = self

        class Endpoint(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                try:
                    answer = redrive(desk.consumer, wanted_by(event) or RedriveRequest(), None).answer()
                except Exception as error:  # noqa: BLE001  # as Lambda does
                    answer = {"errorType": type(error).__name__, "errorMessage": str(error)}
                    self.send_header("X-Amz-Function-Error", "Unhandled")
                body = json.dumps(answer).encode()
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            self.env["AWS_ENDPOINT_URL_LAMBDA"] = f"http://127.0.0.1:{server.server_port}"
            yield
            server.shutdown()
            thread.join()
