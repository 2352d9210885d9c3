"""Configuration of clients of Azure Blob Storage for adlfs: account, endpoint and credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_ckpt.errors import SettingError
from spark_ckpt.storage.shared_clients import SHARED_CLIENTS

AZURE_SCHEMES = ("abfs", "abfss")

_ENDPOINT = "fs.azure.abfs.endpoint"
_OAUTH = "fs.azure.account.oauth2.client"


def azure_file_system(account_host: str, settings: Mapping[str, str]) -> Any:  # noqa: ANN401
    """fsspec file system for `AzureStorage`, shared by all locations with the same account and credentials.

    Args:
        account_host: the account in a location, such as `account.dfs.core.windows.net`.
        settings: Hadoop settings, see `azure_options`.

    Raises:
        ImportError: adlfs is not installed.
        SettingError: a setting has an invalid value.
    """
    from spark_ckpt.storage.azure_client import OneTryAzureFileSystem

    return SHARED_CLIENTS.get(OneTryAzureFileSystem, azure_options(account_host, settings))


def azure_options(account_host: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of `adlfs.AzureBlobFileSystem` for the settings of ABFS.

    Azure's own search supplies unset credentials: `AZURE_*` in the environment, the machine's identity, its tools.

    Args:
        account_host: the account in a location.
        settings: settings by their Hadoop names, `fs.azure.*`, with or without the account at their end.

    Raises:
        SettingError: the OAuth client has no secret, or its endpoint names no tenant.
    """
    account = account_host.partition(".")[0]
    blob_host = account_host.replace(".dfs.", ".blob.", 1)
    hosts = (account_host, blob_host, account_host.replace(".blob.", ".dfs.", 1))

    def get(name: str) -> str | None:
        names = (*(f"{name}.{host}" for host in hosts), name)
        return next((settings[each].strip() for each in names if settings.get(each, "").strip()), None)

    key = get("fs.azure.account.key")
    if (endpoint := get(_ENDPOINT)) is not None:  # an emulator's, in which the account is part of the path
        scheme = "https" if (get("fs.azure.always.use.https") or "true").lower() == "true" else "http"
        parts = {"BlobEndpoint": f"{scheme}://{endpoint}/{account}", "AccountName": account, "AccountKey": key}
        text = ";".join(f"{name}={value}" for name, value in parts.items() if value is not None)
        return {"connection_string": text, "account_name": account}
    options: dict[str, Any] = {"account_name": account, "account_host": blob_host, "anon": False}
    if key is not None:
        options["account_key"] = key
    elif (token := get("fs.azure.sas.fixed.token")) is not None:
        options["sas_token"] = token
    elif (client := get(f"{_OAUTH}.id")) is not None and (secret := get(f"{_OAUTH}.secret")) is not None:
        options |= {"client_id": client, "client_secret": secret, "tenant_id": _tenant(get(f"{_OAUTH}.endpoint"))}
    return options


def _tenant(endpoint: str | None) -> str:
    """Tenant in an OAuth endpoint: `https://login.microsoftonline.com/<tenant>/oauth2/token`."""
    parts = (endpoint or "").partition("://")[2].split("/")
    if len(parts) < 2 or not parts[1]:
        raise SettingError(f"{_OAUTH}.endpoint", f"'{endpoint or ''}' names no tenant")
    return parts[1]
