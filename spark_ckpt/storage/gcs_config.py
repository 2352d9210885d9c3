"""Configuration of clients of Google Cloud Storage for gcsfs: endpoint and credentials."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from spark_ckpt.errors import SettingError
from spark_ckpt.storage.shared_clients import SHARED_CLIENTS

GCS_SCHEME = "gs"

_AUTH = "fs.gs.auth.type"
_KEY_FILE = "fs.gs.auth.service.account.json.keyfile"
_TOKENS = {"UNAUTHENTICATED": "anon", "COMPUTE_ENGINE": "cloud", "APPLICATION_DEFAULT": "google_default"}
_OTHER_AUTHS = ("SERVICE_ACCOUNT_JSON_KEYFILE", "USER_CREDENTIALS", "ACCESS_TOKEN_PROVIDER")
_EMULATOR = "STORAGE_EMULATOR_HOST"
"""Environment variable with the address of an emulator (gcsfs)."""

_DEFAULT_TOKEN = "google_default"


def gcs_file_system(settings: Mapping[str, str]) -> Any:  # noqa: ANN401
    """fsspec file system for `GcsStorage`, shared by all locations with the same endpoint and credentials.

    Args:
        settings: Hadoop settings, see `gcs_options`.

    Raises:
        ImportError: gcsfs is not installed.
        SettingError: a setting has an invalid value, or there are no credentials.
    """
    from google.auth.exceptions import GoogleAuthError

    from spark_ckpt.storage.gcs_client import OneTryGcsFileSystem

    try:
        return SHARED_CLIENTS.get(OneTryGcsFileSystem, gcs_options(settings))
    except GoogleAuthError as e:
        raise SettingError(_AUTH, f"this process finds no credentials: {e}") from e


def gcs_options(settings: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of `gcsfs.core.GCSFileSystem` for the settings of Google's and Apache's connectors.

    Google's own search supplies unset credentials: `GOOGLE_APPLICATION_CREDENTIALS`, gcloud's files, the machine.

    Args:
        settings: settings by their Hadoop names, `fs.gs.*`.

    Raises:
        SettingError: the kind of credentials is unknown, or lacks the file with the key.
    """
    options: dict[str, Any] = {"token": "anon" if os.environ.get(_EMULATOR) else _DEFAULT_TOKEN}
    key_file = settings.get(_KEY_FILE) or None
    kind = settings.get(_AUTH, "").strip().upper()
    if kind in _TOKENS:
        options["token"] = _TOKENS[kind]
    elif kind and kind not in _OTHER_AUTHS:
        raise SettingError(_AUTH, f"'{kind}' is none of {', '.join([*_TOKENS, _OTHER_AUTHS[0]])}")
    elif key_file is not None:
        options["token"] = key_file
    elif kind == _OTHER_AUTHS[0]:
        raise SettingError(_AUTH, f"{kind} needs {_KEY_FILE}")
    if (root := settings.get("fs.gs.storage.root.url")) is not None:
        options["endpoint_url"] = root.rstrip("/")
    if (project := settings.get("fs.gs.project.id")) is not None:
        options["project"] = project
    return options
