from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from spark_ckpt import redaction
from spark_ckpt.bridge.log import RecordFormatter
from spark_ckpt.errors import SparkCkptError, StorageError
from spark_ckpt.redaction import redacted, redacted_values, remember_secret, remember_settings, remember_url
from spark_ckpt.storage import FsspecStorage

TABLE = json.loads(Path(__file__).with_name("redaction.json").read_text())
"""Test cases shared with the jar's tests."""
HIDDEN = [text for text, _ in TABLE["hidden"]]


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    known = redaction._known.copy()
    yield
    redaction._known.clear()
    redaction._known.update(known)


@pytest.mark.parametrize(("text", "expected"), TABLE["hidden"])
def test_credentials_are_in_no_text(text: str, expected: str) -> None:
    assert redacted(text) == expected
    assert redacted(expected) == expected


@pytest.mark.parametrize("text", TABLE["kept"])
def test_what_is_no_credential_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(("before", "piece", "after", "expected_before", "expected_after"), TABLE["long"])
def test_a_text_that_repeats_anything_a_million_times_takes_no_longer_than_others(
    before: str, piece: str, after: str, expected_before: str, expected_after: str | None
) -> None:
    """With a quadratic rule, one of these takes an hour."""
    middle = piece * (1_000_000 // len(piece))
    expected = expected_before if expected_after is None else f"{expected_before}{middle}{expected_after}"
    assert (redacted(before + middle + after) == expected) is True  # pytest would compare them at length


def test_a_url_in_a_long_text_is_remembered() -> None:
    remember_url("a" * 1_000_000 + " s3://user:hunter2-long@b")
    assert redacted("hunter2-long") == "***"


@pytest.mark.parametrize("text", HIDDEN)
def test_credentials_are_in_no_error(text: str) -> None:
    error = StorageError(text, "read", ConnectionError(f"no answer from {text}"))
    assert "hunter2" not in f"{error}{error!r}{vars(error)}"
    assert "hunter2" not in repr(SparkCkptError(f"{text} is not there"))
    storage = FsspecStorage(MemoryFileSystem(), "q", text)
    assert "hunter2" not in repr(storage) + storage.location + storage.describe("x")


@pytest.mark.parametrize("text", HIDDEN)
def test_credentials_are_not_in_the_log(text: str) -> None:
    try:
        raise ConnectionError(f"no answer from {text}")
    except ConnectionError as e:
        record = logging.LogRecord("x", logging.INFO, "", 0, "failed: %s", (text,), (type(e), e, e.__traceback__))
    assert "hunter2" not in RecordFormatter().format(record)


def test_values() -> None:
    value = {"a": ["s3://u:hunter2@b", 1, None, ("s3://u:hunter2@c",)], "b": {"c": "d"}}
    assert redacted_values(value) == {"a": ["s3://***@b", 1, None, ["s3://***@c"]], "b": {"c": "d"}}


@pytest.mark.parametrize("url", ["s3://USER:hun%2Fter2-long@b/x", "s3a://USER:hun/ter2-long@b/x"])
def test_a_password_that_was_seen_is_hidden_without_its_url(url: str) -> None:
    remember_url(url)
    for form in ("hun/ter2-long", "hun%2Fter2-long"):
        assert redacted(f'Invalid bucket name "USER:{form}@b"') == 'Invalid bucket name "USER:***@b"'


def test_secrets_of_settings_are_hidden() -> None:
    remember_settings(
        {"fs.s3a.secret.key": "hunter2-hunter2", "fs.s3a.endpoint": "http://host", "fs.s3a.session.token": "short"}
    )
    assert redacted("hunter2-hunter2 at http://host is short") == "*** at http://host is short"


@pytest.mark.parametrize(
    "secret", ['pass"word-12', "back\\slash-12", "Gr\u00fc\u00dfe-secret", "quote'secret", "tab\tsecret-1"]
)
def test_secrets_are_hidden_as_json_and_python_write_them(secret: str) -> None:
    remember_secret(secret)
    for text in (json.dumps({"a": secret}), json.dumps({"a": secret}, ensure_ascii=False)):
        assert json.loads(redacted(text)) == {"a": "***"}
    assert redacted(f"found {secret!r}") in ("found '***'", 'found "***"')


def test_only_so_many_are_remembered() -> None:
    for i in range(1000):
        remember_settings({"secret": f"hunter2-{i:04d}"})
    assert redacted("hunter2-0000 hunter2-0999") == "hunter2-0000 ***"
    assert len(redaction._known) <= redaction._MAX_KNOWN
