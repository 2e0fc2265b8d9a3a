"""Objects in an S3 bucket; see Storage. Written and listed through boto3, read at any place through pyarrow."""

from __future__ import annotations

from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from pyarrow import fs

from stream_sort.errors import (
    AccessDenied,
    CredentialsError,
    FileMissing,
    StoreError,
    StoreMisconfigured,
    StoreUnavailable,
)
from stream_sort.replay.files.readable import Readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.errors import StreamSortError

ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})
DENIED = frozenset({"403", "AccessDenied", "AllAccessDisabled", "InvalidAccessKeyId", "SignatureDoesNotMatch"})
TAKEN = frozenset({"412", "PreconditionFailed"})
# Somebody else puts or deletes the same name at this moment, and nothing is decided yet.
UNDECIDED = "ConditionalRequestConflict"
ATTEMPTS = 8
PASSING = frozenset({UNDECIDED, "SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "503", "500"})


class S3Objects:
    """Files in a bucket: one PUT an object, so it is never seen in part."""

    def __init__(self, bucket: str, prefix: str, endpoint_url: str | None, region: str | None) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._endpoint_url = endpoint_url
        self._session = boto3.Session(region_name=region)
        # An emulator knows buckets by path only; S3 itself by host name.
        addressing = {"addressing_style": "path" if endpoint_url else "auto"}
        config = Config(retries={"mode": "standard", "total_max_attempts": 8}, s3=addressing)
        with self._named(""):
            self._client = self._session.client("s3", endpoint_url=endpoint_url, config=config)

    def read(self, name: str) -> bytes:
        """See Storage."""
        with self._named(name):
            content: bytes = self._client.get_object(**self._object(name))["Body"].read()
            return content

    def write(self, name: str, content: bytes) -> None:
        """See Storage."""
        with self._named(name):
            self._client.put_object(**self._object(name), Body=content)

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """See Storage."""
        with self._named(name):
            for attempt in range(ATTEMPTS):
                try:
                    self._client.put_object(**self._object(name), Body=content, IfNoneMatch="*")
                except ClientError as error:
                    # Our own write whose reply was lost, and that was sent again, finds itself there.
                    if _code(error) in TAKEN:
                        return False
                    if _code(error) != UNDECIDED or attempt == ATTEMPTS - 1:
                        raise
                else:
                    return True
        return False

    def list(self, prefix: str) -> list[str]:
        """See Storage."""
        with self._named(prefix):
            return sorted(self._names(prefix))

    def some_name(self) -> str | None:
        """See Storage."""
        with self._named(""):
            return next(self._names(""), None)

    def size(self, name: str) -> int | None:
        """See Storage."""
        with self._named(name):
            try:
                return int(self._client.head_object(**self._object(name))["ContentLength"])
            except ClientError as error:
                if _code(error) not in ABSENT:
                    raise
                return None

    def open(self, name: str) -> Readable:
        """See Storage."""
        with self._named(name):
            file = self._files().open_input_file(f"{self._bucket}/{self._prefix}{name}")
        return Readable(file, partial(self._named, name))

    def delete(self, name: str) -> None:
        """See Storage."""
        with self._named(name):
            self._client.delete_object(**self._object(name))

    def sweep(self) -> None:
        """See Storage: what was not put whole was never there."""

    def _names(self, prefix: str) -> Iterator[str]:
        """Return the names that begin so, page by page; a key that ends with / is a folder's mark."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix + prefix
        )
        keys = (found["Key"] for page in pages for found in page.get("Contents", ()))
        return (key.removeprefix(self._prefix) for key in keys if not key.endswith("/"))

    def _object(self, name: str) -> dict[str, Any]:
        return {"Bucket": self._bucket, "Key": self._prefix + name}

    def _files(self) -> fs.S3FileSystem:
        """S3 as pyarrow sees it, with the credentials of boto3: pyarrow finds fewer kinds of them by itself."""
        found = self._session.get_credentials()
        if found is None:
            raise NoCredentialsError
        keys = found.get_frozen_credentials()
        region = self._client.meta.region_name
        return _filesystem(keys.access_key, keys.secret_key, keys.token, region, self._endpoint_url)

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Turn errors of S3 into ours."""
        at = f"s3://{self._bucket}/{self._prefix}{name}"
        try:
            yield
        except ClientError as error:
            raise _translated(error, at, self._bucket) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise CredentialsError(f"{at}: no usable AWS credentials: {error}") from error
        except FileNotFoundError as error:
            raise FileMissing(f"no object {at}; is the address right, and was it deleted?") from error
        except (BotoCoreError, OSError) as error:
            raise StoreUnavailable(f"{at}: {error}") from error


# When the credentials are renewed, so is the filesystem.
@lru_cache(maxsize=4)
def _filesystem(
    access_key: str, secret_key: str, token: str | None, region: str | None, endpoint: str | None
) -> fs.S3FileSystem:
    settings = {"endpoint_override": endpoint} if endpoint else {}
    return fs.S3FileSystem(access_key=access_key, secret_key=secret_key, session_token=token, region=region, **settings)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _translated(error: ClientError, at: str, bucket: str) -> StreamSortError:
    code = _code(error)
    if code == "NoSuchBucket":
        return StoreMisconfigured(f"{at}: there is no bucket {bucket!r}; create it, or name another one")
    if code in ABSENT:
        return FileMissing(f"no object {at}; is the address right, and was it deleted?")
    if code in DENIED:
        return AccessDenied(
            f"{at}: access denied ({code}); the role needs s3:GetObject, s3:PutObject and s3:ListBucket"
        )
    if code in PASSING:
        return StoreUnavailable(f"{at}: S3 is not available for now ({code}); try again")
    return StoreError(f"{at}: {error}")
