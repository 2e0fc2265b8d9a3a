"""AWS's codes decide what an error is. A text decides nothing beyond its own code, whatever names stand in it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointProviderError,
    MetadataRetrievalError,
    NoAuthTokenError,
    NoRegionError,
    ParamValidationError,
    ProfileNotFound,
    RefreshWithMFAUnsupportedError,
)

from stream_sort import (
    AccessDenied,
    CredentialsError,
    EffectRefused,
    InvalidMessage,
    MessageTooLarge,
    SettingsError,
    StoreError,
    StoreMisconfigured,
    StoreUnavailable,
    StreamSorter,
    StreamSortError,
    TableNotFound,
    TransactionTooLarge,
    TryLater,
)
from stream_sort.aws.accounts import AwsPlace
from stream_sort.aws.errors import (
    CREDENTIAL_CODES,
    DENIED_CODES,
    RETRYABLE_CODES,
    is_refusal,
    is_retryable,
    translate,
)
from stream_sort.model.batch import Transaction
from stream_sort.model.consumption import Checkpoint, DeadLetter, Subscription
from stream_sort.stores.dynamodb.calls import CallTarget
from tests.unit.faulty import Faulty, message, refusal

if TYPE_CHECKING:
    from stream_sort.ports import ControlStores

# Names that people give to tables, roles and stacks, and phrases that AWS uses for something else.
HOSTILE = (
    "resize-orders",
    "size",
    "ValidationException",
    "AccessDeniedException",
    "ThrottlingException",
    "exceeded the maximum allowed size",
    "Item size has exceeded the maximum allowed size",
    "does not match the schema",
    "The provided key element does not match the schema",
    "Missing the key seq in the item",
    "does not have the specified index",
    "multiple operations on one item",
    "Transaction request cannot include multiple operations on one item",
    "less than or equal to 100",
    "endpoint",
)
KINDS: dict[str, type[StreamSortError]] = {
    "ResourceNotFoundException": TableNotFound,
    **dict.fromkeys(DENIED_CODES, AccessDenied),
    **dict.fromkeys(CREDENTIAL_CODES, CredentialsError),
}
OTHERS = (
    "IdempotentParameterMismatchException",
    "ItemCollectionSizeLimitExceededException",
    "PolicyNotFoundException",
    "ResourceInUseException",
    "SerializationException",
    "SomethingNew",
)
ROW = Checkpoint("billing", "q", 4, run="run 1")
NEW = replace(ROW, seq=5, version=1)


def said_of(name: str) -> str:
    return (
        f"User: arn:aws:sts::123456789012:assumed-role/{name}-role/{name} is not authorized to perform: x on resource: "
        f"arn:aws:dynamodb:eu-west-1:123456789012:table/{name} ({name})"
    )


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("code", sorted([*KINDS, *OTHERS]))
def test_no_name_changes_what_a_code_says(code: str, name: str) -> None:
    error = refusal(code, says=said_of(name))
    target = CallTarget("PutItem", name, "eu-west-1", "https://here")
    assert not is_refusal(error)
    assert not is_retryable(error)
    ours = translate(error, target)
    assert type(ours) is KINDS.get(code, StoreError)
    assert isinstance(ours, StoreError)
    assert (ours.code, ours.said) == (code, said_of(name))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("code", sorted(RETRYABLE_CODES))
def test_no_name_ends_a_retry(code: str, name: str) -> None:
    assert is_retryable(refusal(code, says=said_of(name)))


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    return StreamSorter(client=client, deadline=0.2, in_flight=1)


def test_no_name_makes_a_good_message_a_bad_one(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put(message(0))
    for code, name in product([*KINDS, *OTHERS], HOSTILE):
        client.before = {"put_item": [refusal(code, says=said_of(name))]}
        with pytest.raises(StoreError) as caught:
            sorter.put(message(1))
        assert type(caught.value) is KINDS.get(code, StoreError), (code, name)


def test_a_throttled_table_makes_no_message_a_bad_one(client: Faulty) -> None:
    sorter = StreamSorter(client=client, deadline=0.02, in_flight=1)
    sorter.put(message(0))
    for name in HOSTILE:
        client.before = {"put_item": [refusal("ThrottlingException", says=said_of(name))] * 99}
        ((_, error),) = sorter.put_many([message(1)]).rejected
        assert type(error) is StoreUnavailable
        assert error.code == "ThrottlingException"


TOO_LARGE = "Item size has exceeded the maximum allowed size"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (TOO_LARGE, MessageTooLarge),
        ("One or more parameter values were invalid: Type mismatch for Index Key size Expected: S Actual: N", None),
        (f"One or more parameter values were invalid: Type mismatch for Index Key {TOO_LARGE} Expected: S", None),
        ("One or more parameter values were invalid: Type mismatch for Index Key missing key Expected: S", None),
        ("One or more parameter values are not valid. Index Key does not match the schema: an empty string", None),
    ],
)
def test_a_phrase_within_its_code_is_what_the_sentence_begins_with(
    client: Faulty, sorter: StreamSorter, said: str, kind: type[Exception] | None
) -> None:
    sorter.put(message(0))
    client.before = {"put_item": [refusal("ValidationException", says=said)]}
    with pytest.raises(InvalidMessage) as caught:
        sorter.put(message(1))
    assert type(caught.value) is (kind or InvalidMessage)


@pytest.mark.parametrize(
    "said",
    [
        "The provided key element does not match the schema",
        "One or more parameter values were invalid: Missing the key seq in the item",
        "One or more parameter values were invalid: Type mismatch for key seq expected: N actual: S",
        "Query condition missed key schema element: queue",
    ],
)
def test_other_keys_are_known_by_their_sentences(client: Faulty, sorter: StreamSorter, said: str) -> None:
    client.before = {"get_item": [refusal("ValidationException", says=said)]}
    with pytest.raises(SettingsError, match="check queue_key and seq_key"):
        sorter.put(message(0))


@pytest.fixture
def control(client: Faulty) -> ControlStores:
    control = StreamSorter(client=client, deadline=0.2, in_flight=1).stores.control("Control")
    control.create_table()
    control.checkpoints.create(ROW)
    return control


def effects(table: str = "Effects") -> Any:
    transaction = Transaction()
    transaction.put(table, {"id": "a"})
    return transaction.effects


def test_a_missing_right_is_no_messages_fault_whatever_the_names_are(client: Faulty, control: ControlStores) -> None:
    for code, name in product([*DENIED_CODES, "ResourceNotFoundException", "SomethingNew"], HOSTILE):
        client.before = {"transact_write_items": [refusal(code, says=said_of(name))]}
        with pytest.raises(TryLater):
            control.checkpoints.commit(ROW, NEW, effects(name))


WITHOUT_A_CODE = [
    MetadataRetrievalError(error_msg="x"),
    RefreshWithMFAUnsupportedError(),
    NoAuthTokenError(),
    ProfileNotFound(profile="x"),
    NoRegionError(),
    EndpointProviderError(msg="x"),
]


@pytest.mark.parametrize("error", WITHOUT_A_CODE, ids=lambda error: type(error).__name__)
def test_a_request_that_could_not_be_sent_gives_no_message_up(
    client: Faulty, control: ControlStores, error: Exception
) -> None:
    client.before = {"transact_write_items": [error] * 9}
    with pytest.raises((TryLater, StoreUnavailable, StoreMisconfigured)):
        control.checkpoints.commit(ROW, NEW, effects())


def test_a_request_that_cannot_be_one_is_its_messages_fault(client: Faulty, control: ControlStores) -> None:
    client.before = {"transact_write_items": [ParamValidationError(report="x")]}
    with pytest.raises(EffectRefused):
        control.checkpoints.commit(ROW, NEW, effects())


def test_a_transaction_that_was_cancelled_for_no_reason_is_not_read_as_a_lost_condition(
    client: Faulty, control: ControlStores
) -> None:
    for some, kind in ((effects(), TryLater), ((), StoreError)):
        client.before = {"transact_write_items": [refusal("TransactionCanceledException")]}
        with pytest.raises(kind, match="cancelled"):
            control.checkpoints.commit(ROW, NEW, some, DeadLetter("q", 5, "x", 1, 0.0))


@pytest.mark.parametrize("code", ["AccessDenied", "ResourceNotFound"])
def test_a_right_that_one_part_of_a_transaction_lacks_is_no_messages_fault(
    client: Faulty, control: ControlStores, code: str
) -> None:
    client.before = {"transact_write_items": [cancelled("None", code)]}
    with pytest.raises(TryLater, match="Put on table 'Effects'"):
        control.checkpoints.commit(ROW, NEW, effects())


@pytest.mark.parametrize("codes", [("None", "SomethingNew"), ("SomethingNew", "None")])
def test_a_reason_that_nobody_knows_gives_no_message_up(
    client: Faulty, control: ControlStores, codes: tuple[str, ...]
) -> None:
    client.before = {"transact_write_items": [cancelled(*codes)]}
    with pytest.raises(TryLater, match="SomethingNew"):
        control.checkpoints.commit(ROW, NEW, effects())


@pytest.mark.parametrize(
    "code", ["ConditionalCheckFailed", "ItemCollectionSizeLimitExceeded", "ValidationError", "DuplicateItem"]
)
def test_a_reason_that_is_the_effects_own_is_its_messages_fault(
    client: Faulty, control: ControlStores, code: str
) -> None:
    client.before = {"transact_write_items": [cancelled("None", code)]}
    with pytest.raises(EffectRefused, match="Put on table 'Effects'"):
        control.checkpoints.commit(ROW, NEW, effects())


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Transaction request cannot include multiple operations on one item", TransactionTooLarge),
        (TOO_LARGE, TransactionTooLarge),
        ("Item size to update has exceeded the maximum allowed size", TransactionTooLarge),
        (
            (
                "1 validation error detected: Value '[...]' at 'transactItems' failed to satisfy constraint: "
                "Member must have length less than or equal to 100"
            ),
            TransactionTooLarge,
        ),
        ("One or more parameter values were invalid: Type mismatch for key size expected: S actual: N", EffectRefused),
        ("Value provided in ExpressionAttributeValues unused in expressions: keys: {:size}", EffectRefused),
        ("The provided key element does not match the schema", EffectRefused),
    ],
)
def test_a_field_called_size_makes_no_transaction_too_large(
    client: Faulty, control: ControlStores, said: str, kind: type[Exception]
) -> None:
    client.before = {"transact_write_items": [refusal("ValidationException", says=said)]}
    with pytest.raises(kind):
        control.checkpoints.commit(ROW, NEW, effects())


def cancelled(*codes: str) -> ClientError:
    reasons = [{"Code": code} for code in codes]
    response: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
    return ClientError(response, "TransactWriteItems")


def test_a_transaction_of_our_own_rows_that_fails_otherwise_is_not_read_as_a_lost_condition(
    client: Faulty, control: ControlStores
) -> None:
    starting = Subscription("new", "earliest", 0.0)
    first = Checkpoint("new", "q", 4, run="run 1")
    client.before = {"transact_write_items": [cancelled("None", "AccessDenied")]}
    with pytest.raises(StoreError, match="AccessDenied"):
        control.checkpoints.create(first, starting)
    client.before = {"transact_write_items": [cancelled("None", "ConditionalCheckFailed")]}
    assert not control.checkpoints.create(first, starting).won


@pytest.mark.parametrize(
    ("place", "which"),
    [
        (AwsPlace(region="endpoint 1"), "check --region and --profile"),
        (AwsPlace(region="eu-west-1", endpoint_url="nowhere"), "check --endpoint-url"),
    ],
)
def test_a_region_called_endpoint_is_not_taken_for_an_address(place: AwsPlace, which: str) -> None:
    with pytest.raises(SettingsError, match=which):
        place.client("lambda", read_timeout=1.0)


@pytest.mark.parametrize(
    ("says", "kind"),
    [("Item size to update has exceeded the maximum allowed size", MessageTooLarge), ("anything else", InvalidMessage)],
)
def test_a_late_message_that_the_table_refuses_is_at_fault_itself(client: Faulty, says: str, kind: Any) -> None:
    sorter = StreamSorter(client=client, in_flight=1)
    sorter.put(message(0))
    sorter.skip("q", 1)
    error = ClientError({"Error": {"Code": "ValidationException", "Message": says}}, "UpdateItem")
    client.before["update_item"] = [error]
    ((_, refused),) = sorter.put_many([message(1)]).rejected
    assert type(refused) is kind
