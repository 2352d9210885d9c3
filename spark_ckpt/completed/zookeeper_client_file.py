"""ZooKeeper client file: the driver's credentials, and the encryption of its connection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from spark_ckpt.completed.errors import ZooKeeperClientFileError
from spark_ckpt.redaction import remember_secret

_SASL_MECHANISMS = ("DIGEST-MD5", "GSSAPI", "PLAIN")


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS encryption of the connection. Paths name PEM files on the driver.

    Args:
        ca: certificates of the authorities that sign the servers' certificates; by default the system's.
        certificate: certificate of the driver, for servers that request one.
        key: private key of the driver's certificate.
        key_password: password of the key file.
        check_hostname: True if a server's certificate must match its host name.
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True


@dataclass(frozen=True, slots=True)
class Sasl:
    """SASL login of the driver.

    Args:
        username: user name; with GSSAPI the name of the ticket, used only in the ACL.
        password: password; None with GSSAPI.
        mechanism: `DIGEST-MD5`, `GSSAPI` or `PLAIN`.
        service: service name of the servers, with GSSAPI.
    """

    username: str
    password: str | None = field(default=None, repr=False)
    mechanism: str = "DIGEST-MD5"
    service: str = "zookeeper"


@dataclass(frozen=True, slots=True)
class Digest:
    """User name and password of ZooKeeper's scheme `digest`, sent with every request.

    Args:
        username: user name, without a colon.
        password: password.
    """

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ZooKeeperClient:
    """Identity and encryption of a driver's connection.

    The ACL opens the driver's nodes to its identity only, or to all clients of the ensemble if it has none.

    Args:
        digest: identity by user name and password.
        sasl: identity by SASL login; exclusive with `digest`.
        tls: encryption.
    """

    digest: Digest | None = None
    sasl: Sasl | None = None
    tls: Tls | None = None

    def options(self) -> dict[str, Any]:
        """Keyword arguments for kazoo's `KazooClient`."""
        from kazoo.security import make_acl, make_digest_acl

        options: dict[str, Any] = {}
        if self.digest is not None:
            name, password = self.digest.username, self.digest.password
            options["auth_data"] = [("digest", f"{name}:{password}")]
            options["default_acl"] = [make_digest_acl(name, password, all=True)]
        if self.sasl is not None:
            options["sasl_options"] = self._login(self.sasl)
            options["default_acl"] = [make_acl("sasl", self.sasl.username, all=True)]
        if self.tls is not None:
            options |= {
                "use_ssl": True,
                "ca": self.tls.ca,
                "certfile": self.tls.certificate,
                "keyfile": self.tls.key,
                "keyfile_password": self.tls.key_password,
                "check_hostname": self.tls.check_hostname,
            }
        return options

    def shared_acl(self) -> list[Any]:
        """ACL of nodes that queries of several identities share; empty without an identity, whose nodes are open.

        Anyone may see such a node and create and delete nodes below it, but not change its ACL or its data. A query's
        node is never empty, so only a client with access to what is below it deletes it.
        """
        own: list[Any] = self.options().get("default_acl", [])
        if not own:
            return []
        from kazoo.security import make_acl

        return [make_acl("world", "anyone", read=True, create=True, delete=True), *own]

    @staticmethod
    def _login(sasl: Sasl) -> dict[str, str]:
        login = {"mechanism": sasl.mechanism, "service": sasl.service}
        if sasl.mechanism != "GSSAPI":
            login |= {"username": sasl.username, "password": sasl.password or ""}
        return login


def read_client_file(path: str) -> ZooKeeperClient:
    """Reads a client file: a JSON object with at most one of `digest` and `sasl`, and optionally `tls`.

    Raises:
        ZooKeeperClientFileError: the file cannot be read or is invalid. The message reveals none of its content except
            field names.
    """
    try:
        with open(path, "rb") as file:
            content = json.loads(file.read())
    except OSError as e:
        raise ZooKeeperClientFileError(path, f"it cannot be read: {e.strerror}") from None
    except ValueError:
        raise ZooKeeperClientFileError(path, "it is not JSON") from None
    parts = {"digest": Digest, "sasl": Sasl, "tls": Tls}
    given = _known(path, "the file", content, parts)
    client = ZooKeeperClient(**{name: _part(path, name, parts[name], value) for name, value in given.items()})
    for secret in (
        client.digest and client.digest.password,
        client.sasl and client.sasl.password,
        client.tls and client.tls.key_password,
    ):
        if secret:
            remember_secret(secret)
    if client.digest is not None and client.sasl is not None:
        raise ZooKeeperClientFileError(path, "it has both digest and sasl, but a driver has one identity")
    if client.digest is not None and (":" in client.digest.username or not client.digest.username):
        raise ZooKeeperClientFileError(path, "digest.username is empty or contains a colon")
    if client.sasl is not None:
        _check_sasl(path, client.sasl)
    return client


def _check_sasl(path: str, sasl: Sasl) -> None:
    if sasl.mechanism not in _SASL_MECHANISMS:
        raise ZooKeeperClientFileError(path, f"sasl.mechanism is not one of {', '.join(_SASL_MECHANISMS)}")
    if sasl.mechanism != "GSSAPI" and sasl.password is None:
        raise ZooKeeperClientFileError(path, f"sasl.password is missing; {sasl.mechanism} requires it")


def _part(path: str, name: str, kind: type[Any], content: object) -> Any:  # noqa: ANN401  (an object of `kind`)
    given = _known(path, name, content, {field.name: field for field in fields(kind)})
    for key, value in given.items():
        value_type = bool if key == "check_hostname" else str
        if not isinstance(value, value_type):
            raise ZooKeeperClientFileError(
                path, f"{name}.{key} is not {'true or false' if value_type is bool else 'text'}"
            )
    try:
        return kind(**given)
    except TypeError:
        raise ZooKeeperClientFileError(path, f"{name} lacks a username or password") from None


def _known(path: str, name: str, content: object, known: Mapping[str, object]) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ZooKeeperClientFileError(path, f"{name} is not a JSON object")
    if unknown := sorted(set(content) - set(known)):
        raise ZooKeeperClientFileError(
            path, f"{name} has the field {unknown[0]!r}, and only {', '.join(known)} have a meaning there"
        )
    return content
