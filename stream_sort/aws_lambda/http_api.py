"""Requests and answers of an HTTP API, a function URL or a REST API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda.parcels import from_base64, read_body
from stream_sort.aws_lambda.receipts import Receipts, error_facts, is_own_fault
from stream_sort.aws_lambda.shapes import Shape
from stream_sort.errors import InvalidInput, MessageTooLarge, SequenceConflict, StreamSortError
from stream_sort.formats.json_text import dumps
from stream_sort.model.outcomes import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.message import KeyNames

OK, MIXED, BAD_REQUEST, NOT_ALLOWED, CONFLICT, TOO_LARGE, FAILED, UNAVAILABLE = 200, 207, 400, 405, 409, 413, 500, 503
RETRY_AFTER_SECONDS = 1


def answer_request(
    event: dict[str, Any], shape: Shape, keys: KeyNames, put: Callable[[list[Any]], Receipts]
) -> dict[str, Any]:
    """Put the messages of a request and answer with their outcomes; errors are answers, without any payload.

    200: all are stored. 400, 409, 413, 503: the outcome of all of them. 207: they differ, see the body.
    """
    method = event["httpMethod"] if shape is Shape.REST else event["requestContext"]["http"]["method"]
    if method != "POST":
        reason = "send messages with POST: one as a JSON object, or a list of them"
        return _response(NOT_ALLOWED, {"error": "MethodNotAllowed", "reason": reason}, {"allow": "POST"})
    try:
        messages = read_body(request_body(event), keys)
    except InvalidInput as error:
        return _response(BAD_REQUEST, error_facts(error))
    receipts = put(messages)
    status = _status(receipts)
    retry = {"retry-after": str(RETRY_AFTER_SECONDS)} if status == UNAVAILABLE else {}
    return _response(status, receipts.answer(), retry)


def request_body(event: dict[str, Any]) -> str | bytes:
    """Return the body of a request, or raise InvalidInput."""
    body = event.get("body")
    if not isinstance(body, str) or not body:
        raise InvalidInput("the request has no body; it must be a message as a JSON object, or a list of them")
    return from_base64(body) if event.get("isBase64Encoded") else body


def _status(receipts: Receipts) -> int:
    """Return one status for all messages, or 207 where they differ."""
    found = {_status_of(receipts, index) for index in range(len(receipts))}
    if found == {BAD_REQUEST, TOO_LARGE}:
        return BAD_REQUEST
    return found.pop() if len(found) == 1 else MIXED


def _status_of(receipts: Receipts, index: int) -> int:
    error = receipts.failure(index)
    if error is not None:
        return _status_of_error(error)
    return CONFLICT if receipts.outcome(index) is Status.CONFLICT else OK


def _status_of_error(error: StreamSortError) -> int:
    if isinstance(error, MessageTooLarge):
        return TOO_LARGE
    if isinstance(error, SequenceConflict):
        return CONFLICT
    if is_own_fault(error):
        return BAD_REQUEST
    return UNAVAILABLE if error.retryable else FAILED


def _response(status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "statusCode": status,
        "headers": {"content-type": "application/json"} | (headers or {}),
        "body": dumps(body),
        "isBase64Encoded": False,
    }
