"""What AWS says, in our words: one table from botocore's errors to ours.

AWS's code decides. A text is read only within its own code, and only from where its sentence begins: the names of
tables, roles, stacks and fields that stand in it are other people's choice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    SSOError,
    TokenRetrievalError,
    UnknownCredentialError,
)
from botocore.exceptions import ConnectionError as NoConnectionError

from stream_sort.errors import (
    AccessDenied,
    CredentialsError,
    OtherKeys,
    SettingsError,
    StoreError,
    StoreUnavailable,
    StreamSortError,
    TableNotFound,
)

if TYPE_CHECKING:
    from stream_sort.stores.dynamodb.calls import CallTarget

RETRYABLE_CODES = frozenset(
    {
        "InternalFailure",
        "InternalServerError",
        "KMSInternalException",
        "KMSThrottlingException",
        "LimitExceededException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
# Why a transaction may be cancelled although nothing stands against it; "None" is said of the actions without fault.
TRANSIENT_REASONS = RETRYABLE_CODES | {"None"}
CREDENTIAL_CODES = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "InvalidToken",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
CREDENTIAL_ERRORS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    SSOError,
    TokenRetrievalError,
    UnknownCredentialError,
)
INVALID = "ValidationException"
# Why a transaction was cancelled: one of its conditions did not hold.
REFUSED = "ConditionalCheckFailed"
# What DynamoDB says of a table whose own keys have other names or types. What it says of a value under the key
# of an index is the fault of one message.
OTHER_KEYS = re.compile(
    r"(?:One or more parameter values (?:were invalid|are not valid)[:.] ?)?"
    r"(?:The provided key element does not match the schema|Query condition missed key schema element"
    r"|Query key condition not supported|The number of query conditions |Condition parameter type does not match schema"
    r"|Missing (?:the )?key |Type mismatch for key )",
    re.IGNORECASE,
)
NO_INDEX = "The table does not have the specified index"
INDEX_IS_BEING_MADE = "Cannot read from backfilling global secondary index"
ITEM_TOO_LARGE = re.compile(r"Item size (?:to update )?has exceeded the maximum allowed size")
NO_USE_OF_KEY = "KMSAccessDeniedException"
DENIED_CODES = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        NO_USE_OF_KEY,
        "NotAuthorized",
        "NotAuthorizedException",
        "OptInRequired",
        "UnauthorizedException",
        "UnauthorizedOperation",
    }
)
NOT_THERE = frozenset(
    {
        "NoSuchBucket",
        "NoSuchEntity",
        "NoSuchEntityException",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "ResourceNotFoundException",
        "TableNotFoundException",
    }
)
TOO_MANY, SERVER_ERROR = 429, 500
# How operations begin that change nothing.
READS = ("BatchGet", "Describe", "Get", "List", "Query", "Scan")
MADE_BY = "Tables of your own are made by sorter.create_tables(), a control table by consumer.create_tables()"


def code_of(error: Exception) -> str:
    """Return the AWS error code, without the prefix of SQS's older ones; empty if AWS did not answer."""
    answer = error.response.get("Error", {}) if isinstance(error, ClientError) else {}
    return str(answer.get("Code", "")).rpartition(".")[2]


def status_of(error: Exception) -> int:
    """Return the HTTP status of AWS's answer; 0 if AWS did not answer."""
    answer = error.response.get("ResponseMetadata", {}) if isinstance(error, ClientError) else {}
    return int(answer.get("HTTPStatusCode", 0))


def said_of(error: Exception) -> str:
    """Return AWS's own text, without what botocore puts around it; empty if AWS did not answer."""
    return str(error.response.get("Error", {}).get("Message", "")) if isinstance(error, ClientError) else ""


def is_denied(error: Exception) -> bool:
    """Return True if whoever asks lacks a permission."""
    return code_of(error) in DENIED_CODES


def lacks_credentials(error: Exception) -> bool:
    """Return True if nobody knows who asks: no credentials are found, or they are not valid any more."""
    return code_of(error) in CREDENTIAL_CODES or isinstance(error, CREDENTIAL_ERRORS)


def is_refusal(error: Exception) -> bool:
    """Return True if a condition did not hold, or a transaction was cancelled for good."""
    if code_of(error) == "TransactionCanceledException":
        return not is_retryable(error)
    return code_of(error) == "ConditionalCheckFailedException"


def is_retryable(error: Exception) -> bool:
    """Return True if the same call may succeed a moment later: throttles, 5xx, timeouts, lost connections."""
    if isinstance(error, ClientError):
        reasons = {reason.get("Code", "None") for reason in error.response.get("CancellationReasons", ())}
        if reasons:
            return reasons <= TRANSIENT_REASONS
        status = status_of(error)
        return code_of(error) in RETRYABLE_CODES or status == TOO_MANY or status >= SERVER_ERROR
    return isinstance(error, HTTPClientError | NoConnectionError)


def unavailable(problem: object, target: CallTarget, *, seconds: float, tries: int) -> StoreUnavailable:
    """Return the error of a call that did not succeed before its deadline."""
    text = (
        f"{target.operation} on table {target.table!r} did not succeed in {seconds:.1f} s and {tries} tries: {problem}"
    )
    if isinstance(problem, EndpointConnectionError):
        text += f". Is {target.endpoint} the right endpoint and region, and reachable from here?"
    elif target.operation.startswith(READS):
        text += ". The same call can be made again"
    else:
        text += ". It may or may not have been done; the same call can be made again"
    facts = {"code": code_of(problem), "said": said_of(problem)} if isinstance(problem, Exception) else {}
    return StoreUnavailable(text, table=target.table, operation=target.operation, **facts)


def lacks_index(error: BaseException | None) -> bool:
    """Return True if AWS refused a query because the table has no such index, or does not have it yet."""
    if not isinstance(error, ClientError) or code_of(error) != INVALID:
        return False
    return said_of(error).startswith((NO_INDEX, INDEX_IS_BEING_MADE))


def _denial(code: str, target: CallTarget) -> str:
    """Say what is not allowed, and who has to allow it."""
    if code == NO_USE_OF_KEY:
        key = f"the KMS key of table {target.table!r}"
        return f"not allowed to use {key}; allow it in the key's policy, or in that of the role that runs this"
    called = f"dynamodb:{target.permission} on table {target.table!r}"
    return f"not allowed to call {called}; add it to the policy of the role that runs this"


def translate(error: ClientError | BotoCoreError, target: CallTarget) -> StreamSortError:
    """Return our error for one that no retry will cure."""
    operation, table = target.operation, target.table
    code, said = code_of(error), said_of(error)
    names = {"table": table, "operation": operation, "code": code, "said": said}
    where = f"{target.region} ({target.endpoint})"
    # Of two that are read together AWS does not say which one.
    each = list(map(repr, table.split(" and ")))
    if code == "ResourceNotFoundException":
        missing = " or no table ".join(each)
        return TableNotFound(
            f"no table {missing} in {where}; is its name right, and is the stack deployed there? {MADE_BY}", **names
        )
    if is_denied(error):
        return AccessDenied(f"{_denial(code, target)}. AWS says: {error}", **names)
    if lacks_credentials(error):
        return CredentialsError(
            f"no usable AWS credentials for {operation} on table {table!r}: {error}; "
            "set AWS_PROFILE or the AWS_* variables, or log in again",
            **names,
        )
    if code == INVALID and OTHER_KEYS.match(said):
        return OtherKeys(
            f"table {' or table '.join(each)} in {where} does not fit the key names that were set; is it the right "
            f"table? If so, check queue_key and seq_key. AWS says: {error}",
            table=table,
        )
    if lacks_index(error):
        return SettingsError(f"table {table!r} lacks an index that create_tables would make. AWS says: {error}")
    return StoreError(f"{operation} on table {table!r}: {error}", **names)
