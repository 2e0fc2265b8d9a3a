from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.errors import CredentialsError, StoreMisconfigured, StoreUnavailable
from stream_sort.local.tools import REGION, environment
from stream_sort.replay.files.storage import Storage
from tests.unit.storage_claims import StorageClaims

if TYPE_CHECKING:
    from stream_sort.local.ministack import MiniStack


@pytest.fixture
def bucket(ministack: MiniStack, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, environment()[name])
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    client: Any = ministack.client("s3")
    client.create_bucket(Bucket=name)
    client.close()
    return name


class TestS3Objects(StorageClaims):
    @pytest.fixture
    def storage(self, ministack: MiniStack, bucket: str) -> Storage:
        return Storage(f"s3://{bucket}/some/prefix/", ministack.url, REGION)


def test_a_bucket_has_no_prefix_and_other_schemes_too(ministack: MiniStack, bucket: str) -> None:
    Storage(f"s3a://{bucket}", ministack.url, REGION).write("a/b", b".")
    assert Storage(f"s3://{bucket}/a", ministack.url, REGION).list() == ["b"]


def test_more_names_than_one_page_holds_are_listed(ministack: MiniStack, bucket: str) -> None:
    storage = Storage(f"s3://{bucket}/many", ministack.url, REGION)
    names = [f"{number:04d}" for number in range(1_005)]
    for name in names:
        storage.write(name, b".")
    assert storage.list() == names


@pytest.mark.usefixtures("bucket")
def test_a_bucket_that_is_not_there_is_named(ministack: MiniStack) -> None:
    storage = Storage("s3://no-such-bucket-here/x", ministack.url, REGION)
    for use in (storage.list, lambda: storage.write("a", b"."), lambda: storage.read("a")):
        with pytest.raises(StoreMisconfigured, match="there is no bucket 'no-such-bucket-here'"):
            use()


def test_nobody_at_the_endpoint_is_no_empty_list(bucket: str) -> None:
    with pytest.raises(StoreUnavailable, match=bucket):
        Storage(f"s3://{bucket}/x", "http://127.0.0.1:9", REGION).list()


def test_no_credentials_are_named(ministack: MiniStack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(CredentialsError, match="no usable AWS credentials"):
        Storage("s3://some-bucket/x", ministack.url, REGION).list()
