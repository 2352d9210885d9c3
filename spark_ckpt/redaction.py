"""Redaction of credentials in text for humans.

All text that leaves the process passes through `redacted`: messages and attributes of errors, log lines, output of the
command line, reasons recorded in files. It recognizes credentials by their place in a URL. It also recognizes those
the process was given, because another library may quote one without its URL. The jar applies the same rules to URLs
(`Redaction.scala`), and both are tested against one table.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

HIDDEN = "***"
"""Replacement of a credential."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^\s'\"<>]*)")
_PORT = re.compile(r".*:[0-9]{0,5}", re.DOTALL)
# In these schemes, the part before "@" is the name of a container.
_CONTAINER_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})

_VALUE = r"=)[^\s&#'\"<>]+"
_OF_STORAGE = r"x-(?:amz|goog)-(?:signature|credential|security-token)|awsaccesskeyid|signature|sig"
_ANYWHERE = re.compile(rf"([?&](?:{_OF_STORAGE}){_VALUE}", re.IGNORECASE)
_WORDS = r"token|secret|password|passwd|pwd|credential|signature|access[_-]?key|api[_-]?key"
_IN_URL = re.compile(rf"([?&](?:[a-z0-9_.-]*(?:{_WORDS})[a-z0-9_.-]*|auth|key){_VALUE}", re.IGNORECASE)

_SECRET_SETTING = re.compile(r"secret|password|passwd|token|\bsas\b|account\.key", re.IGNORECASE)
_SHORTEST = 8
_MOST = 256

_known: OrderedDict[str, None] = OrderedDict()


def redacted(text: str) -> str:
    """Text with `***` in place of the user and password of each URL, of secret query parameters, and of the secrets
    known to this process."""
    for secret in tuple(_known):
        text = text.replace(secret, HIDDEN)
    if "://" in text:
        text = _IN_URL.sub(rf"\1{HIDDEN}", _URL.sub(_without_user, text))
    return _ANYWHERE.sub(rf"\1{HIDDEN}", text)


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
    match = _URL.search(url)
    if match is None or (end := _end_of_user(match[1], match[2])) is None:
        return
    user, colon, password = match[2][:end].partition(":")
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
    """Registers a secret, so that it is redacted from now on, both verbatim and percent-encoded."""
    for form in (secret, unquote(secret), quote(secret, safe="")):
        if len(form) >= _SHORTEST:  # a shorter one would match parts of unrelated words
            _known[form] = None
            _known.move_to_end(form)
    while len(_known) > _MOST:
        _known.popitem(last=False)


def _without_user(url: re.Match[str]) -> str:
    end = _end_of_user(url[1], url[2])
    return url[0] if end is None else f"{url[1]}://{HIDDEN}{url[2][end:]}"


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
