"""ZooKeeper session: each request ends within a bounded time, with an answer or a typed error."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed.errors import KazooNotFoundError, ZooKeeperAccessError, ZooKeeperUnavailableError
from spark_ckpt.completed.zookeeper_client_file import ZooKeeperClient

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_PAUSE_SECONDS = 0.1
_RECONNECT = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 2.0}


class NoAnswerError(Exception):
    """The outcome of a transaction is unknown: it was sent, or may still be sent, and no answer came."""


class ZooKeeperSession:
    """ZooKeeper session that connects on the first request.

    kazoo reconnects in the background, and opens a new session if the servers expire this one. The ephemeral nodes are
    gone then, and the caller must detect that.

    The servers execute the requests of one session in order, including those that waited for a connection. So the
    answer to a read reflects every transaction sent before it.

    Args:
        quorum: servers as `host:port`, separated by commas.
        timeout: session timeout in seconds, and the time limit of each request.
        clock: clock for pauses.
        security: identity and encryption; without it all clients can access the nodes that this session creates.
    """

    def __init__(
        self, quorum: str, timeout: float, clock: Clock | None = None, security: ZooKeeperClient | None = None
    ) -> None:
        self._security = security or ZooKeeperClient()
        self._quorum = quorum
        self._timeout = timeout
        self._clock = clock or SystemClock()
        self._client: KazooClient | None = None
        self.address = "zookeeper://" + re.sub(r"[^,/]*@", "", quorum)
        """Servers for display, without credentials."""

    def get(self, path: str) -> tuple[bytes, int] | None:
        """Data and version of a node; None if it does not exist.

        Raises:
            ZooKeeperUnavailableError: no answer came.
        """
        found = self._read(lambda client: client.get_async(path), path)
        return (found[0], found[1].version) if found is not None else None

    def children(self, path: str) -> list[str]:
        """Names of the children of a node, unordered; empty if the node does not exist.

        Raises:
            ZooKeeperUnavailableError: no answer came.
        """
        return list(self._read(lambda client: client.get_children_async(path), path) or ())

    def exists(self, path: str) -> bool:
        """True if the node exists.

        Raises:
            ZooKeeperUnavailableError: no answer came.
        """
        return self._read(lambda client: client.exists_async(path), path) is not None

    def ensure_shared(self, path: str) -> None:
        """Creates a node and its parents where they do not exist, all of them for queries of any identity.

        Raises:
            ZooKeeperUnavailableError: no answer came.
            ZooKeeperAccessError: one of the nodes exists, and this driver may not create nodes below it.
        """
        acl = self._security.shared_acl() or None
        try:
            self._read(lambda client: client.ensure_path_async(path, acl=acl), path)
        except ZooKeeperAccessError as e:
            raise self.no_access_below(path) from e

    def commit(self, build: Callable[[Any], None]) -> Sequence[Any] | None:
        """Commits a transaction atomically.

        Args:
            build: adds the operations to kazoo's transaction.

        Returns:
            Result of each operation; None if an operation was rejected.

        Raises:
            NoAnswerError: the outcome is unknown.
            ZooKeeperUnavailableError: there was no connection at all.
            ZooKeeperAccessError: this driver has no permission to change one of the nodes.
        """
        from kazoo.exceptions import KazooException, NoAuthError

        client = self._connected()
        transaction = client.transaction()
        build(transaction)
        try:
            results = transaction.commit_async().get(timeout=self._timeout)
        except (KazooException, client.handler.timeout_exception) as e:
            raise NoAnswerError(_reason(e)) from e
        if any(isinstance(result, NoAuthError) for result in results):
            raise self._no_access("")
        return None if any(isinstance(result, Exception) for result in results) else results

    def close(self) -> None:
        """Closes the session. Its ephemeral nodes disappear at once if a server receives the request."""
        client, self._client = self._client, None
        if client is not None:
            client.stop()
            client.close()

    def _read(self, request: Callable[[KazooClient], Any], path: str) -> Any:  # noqa: ANN401  (kazoo has no types)
        """Repeats a request until an answer comes or the timeout ends; None if the node does not exist."""
        from kazoo.exceptions import (
            AuthFailedError,
            ConnectionLoss,
            KazooException,
            NoAuthError,
            NoNodeError,
            SessionExpiredError,
        )

        client = self._connected()
        deadline = self._clock.monotonic() + self._timeout
        while True:
            timeout = max(_PAUSE_SECONDS, deadline - self._clock.monotonic())
            try:
                # A server that lags behind the others returns stale data unless a sync makes it catch up.
                client.sync_async(path)
                return request(client).get(timeout=timeout)
            except NoNodeError:
                return None
            except (NoAuthError, AuthFailedError) as e:
                raise self._no_access(path) from e
            except (ConnectionLoss, SessionExpiredError) as e:
                if self._clock.monotonic() >= deadline:
                    raise self._unavailable(path, e) from e
                self._clock.sleep(_PAUSE_SECONDS)
            except (KazooException, client.handler.timeout_exception) as e:
                raise self._unavailable(path, e) from e

    def _connected(self) -> KazooClient:
        if self._client is None:
            try:
                from kazoo.client import KazooClient
            except ImportError as e:
                raise KazooNotFoundError from e
            from kazoo.exceptions import AuthFailedError, ConfigurationError

            try:
                client = KazooClient(
                    self._quorum, timeout=self._timeout, connection_retry=_RECONNECT, **self._security.options()
                )
            except ConfigurationError as e:
                raise KazooNotFoundError from e  # SASL needs a package of its own
            try:
                client.start(self._timeout)
            except AuthFailedError as e:
                raise self._no_access("") from e
            except client.handler.timeout_exception as e:
                raise self._unavailable("", e) from e
            self._client = client
        return self._client

    def _no_access(self, path: str) -> ZooKeeperAccessError:
        return ZooKeeperAccessError(self.address, path, "the servers refuse this identity access")

    def no_access_below(self, path: str) -> ZooKeeperAccessError:
        """The error for a shared node below which this driver may not create nodes."""
        reason = (
            "this identity may not create nodes there. Earlier releases closed this node to all identities but the "
            f"first: let that one run 'setAcl {path} world:anyone:cdr,<scheme>:<its id>:cdrwa', or set another "
            "zookeeper.path"
        )
        return ZooKeeperAccessError(self.address, path, reason)

    def _unavailable(self, path: str, cause: Exception) -> ZooKeeperUnavailableError:
        return ZooKeeperUnavailableError(self.address, path, f"{_reason(cause)} within {self._timeout:g} s")


def _reason(cause: Exception) -> str:
    return f"no answer ({type(cause).__name__}{f': {cause}' if str(cause) else ''})"
