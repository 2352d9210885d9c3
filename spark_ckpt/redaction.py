"""Texts for people without the credentials that they may carry.

What leaves a process goes through `redacted`: messages and attributes of errors, lines of the log, what the command
line prints, reasons that get into files. It knows credentials by their place in a URL. It also knows those that the
process was given: another library may quote one without its URL. The jar has the same rules for URLs
(`Redaction.scala`), and one table of tests is for both.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

HIDDEN = "***"
"""What stands in place of a credential."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^\s'\"<>]*)")
_PORT = re.compile(r".*:[0-9]{0,5}", re.DOTALL)
# Before their "@" stands the name of a container.
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
    """A text in which the user and password of each URL, the secret parameters of a query, and the secrets that this
    process knows are `***`."""
    for secret in tuple(_known):
        text = text.replace(secret, HIDDEN)
    if "://" in text:
        text = _IN_URL.sub(rf"\1{HIDDEN}", _URL.sub(_without_user, text))
    return _ANYWHERE.sub(rf"\1{HIDDEN}", text)


def redacted_values(value: Any) -> Any:  # noqa: ANN401
    """A value of JSON with all its texts redacted."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {key: redacted_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted_values(item) for item in value]
    return value


def remember_url(url: str) -> None:
    """Notes the password in a URL, so that it is in no text from now on, in whatever context.

    Args:
        url: any text; one without a password is not looked at any further.
    """
    match = _URL.search(url)
    if match is None or (end := _end_of_user(match[1], match[2])) is None:
        return
    user, colon, password = match[2][:end].partition(":")
    if colon:
        remember_secret(password)
        # A library may take what comes before the first slash for a bucket, and the rest for a path.
        first, *others = password.split("/")
        for part in (f"{user}:{first}", *others) if others else ():
            remember_secret(part)


def remember_settings(settings: Mapping[str, str]) -> None:
    """Notes the values of the settings that are secret by their names.

    Args:
        settings: of a file system, by their Hadoop names.
    """
    for key, value in settings.items():
        if _SECRET_SETTING.search(key):
            remember_secret(value)


def remember_secret(secret: str) -> None:
    """Notes a secret itself, so that it is in no text from now on, as it stands or percent-encoded."""
    for form in (secret, unquote(secret), quote(secret, safe="")):
        if len(form) >= _SHORTEST:  # a shorter one would be found in words that say something else
            _known[form] = None
            _known.move_to_end(form)
    while len(_known) > _MOST:
        _known.popitem(last=False)


def _without_user(url: re.Match[str]) -> str:
    end = _end_of_user(url[1], url[2])
    return url[0] if end is None else f"{url[1]}://{HIDDEN}{url[2][end:]}"


def _end_of_user(scheme: str, rest: str) -> int | None:
    """End of the user and password of a URL, counted from `://`; None if it has none.

    A secret key may have a slash, though it should be written as `%2F`. An "@" behind the first slash belongs to the
    path, unless what comes before the slash has a colon and is no host with its port.
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
