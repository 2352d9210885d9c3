"""Redaction of credentials in text for humans.

All text that leaves the process passes through `redacted`: messages and attributes of errors, log lines, output of the
command line, reasons recorded in files. It recognizes credentials by their place in a URL. It also recognizes those
the process was given, because another library may quote one without its URL. The jar applies the same rules to URLs
(`Redaction.scala`), and both are tested against one table.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

HIDDEN = "***"
"""Replacement of a credential."""

_SCHEME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-")
_REST = re.compile(r"[^\s'\"<>]*")
_PORT = re.compile(r".*:[0-9]{0,5}", re.DOTALL)
# In these schemes, the part before "@" is the name of a container.
_CONTAINER_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})

_PARAMETER = re.compile(r"[?&]([a-z0-9_.-]+)=(?=[^\s&#'\"<>])", re.IGNORECASE)
_VALUE = re.compile(r"[^\s&#'\"<>]+")
_OF_STORAGE = re.compile(
    r"x-(?:amz|goog)-(?:signature|credential|security-token)|awsaccesskeyid|signature|sig", re.IGNORECASE
)
_WORDS = re.compile(
    r"token|secret|password|passwd|pwd|credential|signature|access[_-]?key|api[_-]?key|^(?:auth|key)\Z", re.IGNORECASE
)

_SECRET_SETTING = re.compile(r"secret|password|passwd|token|\bsas\b|account\.key", re.IGNORECASE)
_MIN_LENGTH = 8
_MAX_KNOWN = 256

_known: OrderedDict[str, None] = OrderedDict()


def redacted(text: str) -> str:
    """Text with `***` in place of the user and password of each URL, of secret query parameters, and of the secrets
    known to this process.

    It takes time in proportion to the length of the text, whatever is in it: names and texts of users pass through it.
    """
    for secret in tuple(_known):
        text = text.replace(secret, HIDDEN)
    has_url = "://" in text
    return _without_parameters(_without_users(text) if has_url else text, has_url)


def shortened(text: str, limit: int) -> str:
    """Text of at most about `limit` characters, with the number of those left out.

    Redact it first: a part of a secret is not recognized.
    """
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit} more characters)"


def redacted_values(value: Any) -> Any:  # noqa: ANN401
    """JSON value with all strings in it redacted."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {key: redacted_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted_values(item) for item in value]
    return value


def remember_url(url: str) -> None:
    """Registers the password of a URL, so that it is redacted from now on in any context.

    Args:
        url: any text; ignored if it has no password.
    """
    found = next(_urls(url), None)
    if found is None or (end := _end_of_user(found.scheme, found.rest)) is None:
        return
    user, colon, password = found.rest[:end].partition(":")
    if colon:
        remember_secret(password)
        # A library may parse the part before the first slash as a bucket, and the rest as a path.
        first, *others = password.split("/")
        for part in (f"{user}:{first}", *others) if others else ():
            remember_secret(part)


def remember_settings(settings: Mapping[str, str]) -> None:
    """Registers the values of all settings whose names mark them as secret.

    Args:
        settings: settings of a file system by their Hadoop names.
    """
    for key, value in settings.items():
        if _SECRET_SETTING.search(key):
            remember_secret(value)


def remember_secret(secret: str) -> None:
    """Registers a secret, so that it is redacted from now on: verbatim, percent-encoded, and as JSON and Python write
    it in a string, because a library may quote it so."""
    escaped = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])
    for form in (secret, unquote(secret), quote(secret, safe=""), *escaped):
        if len(form) >= _MIN_LENGTH:  # a shorter one would match parts of unrelated words
            _known[form] = None
            _known.move_to_end(form)
    while len(_known) > _MAX_KNOWN:
        _known.popitem(last=False)


class _Url(NamedTuple):
    """Place of a URL in a text: it begins at `start`, `rest` follows `://`, and the text continues at `end`."""

    start: int
    scheme: str
    rest: str
    end: int


def _urls(text: str) -> Iterator[_Url]:
    """The URLs in a text. A regular expression would look for the end of the scheme from each letter of a long word."""
    at = 0
    while (colon := text.find("://", at)) >= 0:
        start = colon
        while start > at and text[start - 1] in _SCHEME_CHARACTERS:
            start -= 1
        while start < colon and not text[start].isalpha():
            start += 1
        at = colon + 3
        if start < colon:
            match = _REST.match(text, at)
            assert match is not None  # it may be empty
            at = match.end()
            yield _Url(start, text[start:colon], match[0], at)


def _without_users(text: str) -> str:
    parts: list[str] = []
    at = 0
    for url in _urls(text):
        if (end := _end_of_user(url.scheme, url.rest)) is not None:
            parts += text[at : url.start], url.scheme, "://", HIDDEN, url.rest[end:]
            at = url.end
    return "".join((*parts, text[at:]))


def _without_parameters(text: str, has_url: bool) -> str:
    parts: list[str] = []
    at = 0
    while (parameter := _PARAMETER.search(text, at)) is not None:
        parts.append(text[at : parameter.end()])
        at = parameter.end()
        if _OF_STORAGE.fullmatch(parameter[1]) or (has_url and _WORDS.search(parameter[1])):
            value = _VALUE.match(text, at)
            assert value is not None  # the parameter has a value
            parts.append(HIDDEN)
            at = value.end()
    return "".join((*parts, text[at:]))


def _end_of_user(scheme: str, rest: str) -> int | None:
    """End of the user and password of a URL, counted from after `://`; None if it has neither.

    A secret key may contain a slash, although it should be encoded as `%2F`. An "@" after the first slash belongs to
    the path, unless the part before the slash has a colon and is not a host with a port.
    """
    body = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority = body.partition("/")[0]
    user = authority.rfind("@")
    if user >= 0:
        is_container = scheme.lower() in _CONTAINER_SCHEMES and ":" not in authority[:user]
        return None if is_container else user
    if ":" in authority and not authority.startswith("[") and not _PORT.fullmatch(authority):
        return None if (last := body.rfind("@")) < 0 else last
    return None
