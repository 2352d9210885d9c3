"""Authentication and encryption of the ZooKeeper store on real servers."""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NotEmptyError
from kazoo.security import make_acl, make_digest_acl

from spark_ckpt.completed.errors import ZooKeeperAccessError, ZooKeeperClientFileError, ZooKeeperUnavailableError
from spark_ckpt.completed.mirror import Mirror
from spark_ckpt.completed.zookeeper import ZooKeeperCompletedCheckpointStore
from spark_ckpt.completed.zookeeper_client_file import ZooKeeperClient, read_client_file
from spark_ckpt.completed.zookeeper_session import ZooKeeperSession
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.storage import LocalStorage
from tests.completed.records import add, owner
from tests.support.zookeeper import SESSION_SECONDS, ZooKeeperServer

SECRET = "s3cret-of-the-test"
SESSIONS: list[ZooKeeperSession] = []
"""Sessions opened by the test."""


@pytest.fixture(autouse=True)
def _close_sessions() -> Iterator[None]:
    """Closes the sessions before the server stops: otherwise their threads try to reconnect until the process exits."""
    yield
    while SESSIONS:
        SESSIONS.pop().close()


def client_file(folder: Path, content: object) -> str:
    path = folder / "client.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def opened(
    server: ZooKeeperServer,
    folder: Path,
    content: object | None,
    name: str = "a",
    timeout: float = SESSION_SECONDS,
    node: str = "/secured/query",
) -> ZooKeeperCompletedCheckpointStore:
    security = None if content is None else read_client_file(client_file(folder, content))
    session = ZooKeeperSession(server.quorum, timeout, security=security)
    SESSIONS.append(session)
    return ZooKeeperCompletedCheckpointStore(session, node, Mirror(LocalStorage(folder)), owner(name))


def works(server: ZooKeeperServer, folder: Path, content: object) -> None:
    """Asserts that a driver can claim and complete a checkpoint, and that the next driver finds it."""
    first = opened(server, folder, content)
    first.recover()
    first.claim()
    kept = add(first, 1)
    second = opened(server, folder, content, "b")
    second.recover()
    assert second.all() == [kept]
    second.claim()
    assert add(second, 2).generation == 2


def no_secret_in(error: BaseException) -> None:
    assert SECRET not in str(error) and SECRET not in repr(error)


# ---- client file -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON"),
        ([1], "the file is not a JSON object"),
        ({"digets": {}}, "'digets'"),
        ({"digest": SECRET}, "digest is not a JSON object"),
        ({"digest": {"username": "a"}}, "lacks a username or password"),
        ({"digest": {"username": "a", "password": 7}}, "digest.password is not text"),
        ({"digest": {"username": "a:b", "password": SECRET}}, "colon"),
        ({"digest": {"username": "a", "password": SECRET, "acl": "x"}}, "'acl'"),
        ({"digest": {"username": "a", "password": "b"}, "sasl": {"username": "a", "password": SECRET}}, "both"),
        ({"sasl": {"username": "a"}}, "sasl.password is missing"),
        ({"sasl": {"username": "a", "password": SECRET, "mechanism": "NTLM"}}, "not one of DIGEST-MD5"),
        ({"tls": {"check_hostname": "no"}}, "tls.check_hostname is not true or false"),
    ],
)
def test_a_file_that_does_not_say_how_to_connect_is_refused(content: object, reason: str, tmp_path: Path) -> None:
    path = client_file(tmp_path, content)
    with pytest.raises(ZooKeeperClientFileError, match=reason) as raised:
        read_client_file(path)
    assert raised.value.path == path and path in str(raised.value)
    no_secret_in(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ZooKeeperClientFileError, match=r"nothing\.json: it cannot be read: No such file"):
        read_client_file(str(tmp_path / "nothing.json"))


def test_no_password_stands_in_a_representation(tmp_path: Path) -> None:
    for content in (
        {"digest": {"username": "a", "password": SECRET}, "tls": {"key_password": SECRET}},
        {"sasl": {"username": "a", "password": SECRET}},
    ):
        client = read_client_file(client_file(tmp_path, content))
        assert SECRET not in repr(client)
        assert SECRET in str(client.options())


def test_without_a_file_nothing_is_said_to_the_servers() -> None:
    assert ZooKeeperClient().options() == {}


# ---- digest ----------------------------------------------------------------------------------------------------------

DIGEST = {"digest": {"username": "spark", "password": SECRET}}


@pytest.fixture(scope="module")
def plain_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def test_nodes_of_an_identity_are_closed_to_others(plain_server: ZooKeeperServer, tmp_path: Path) -> None:
    works(plain_server, tmp_path, DIGEST)
    others: list[dict[str, Any] | None] = [None, {"digest": {"username": "spark", "password": "another"}}]
    for content in others:
        store = opened(plain_server, tmp_path, content, "c")
        with pytest.raises(ZooKeeperAccessError, match=r"zookeeper\.clientFile") as raised:
            store.recover()
        no_secret_in(raised.value)
    with plain_server.client() as stranger:
        for call in (stranger.get, stranger.delete, stranger.get_children):
            with pytest.raises(NoAuthError):
                call("/secured/query/records")


TEAMS: list[dict[str, Any] | None] = [
    {"digest": {"username": "team-a", "password": SECRET}},
    {"digest": {"username": "team-b", "password": f"{SECRET}-b"}},
    None,
]


@pytest.mark.parametrize("first", range(len(TEAMS)))
def test_queries_of_several_identities_share_parents_and_no_nodes(
    plain_server: ZooKeeperServer, tmp_path: Path, first: int
) -> None:
    teams = [*TEAMS[first:], *TEAMS[:first]]
    parent = f"/teams-{first}/shared"
    for i, content in enumerate(teams):
        (tmp_path / f"{i}").mkdir()
        store = opened(plain_server, tmp_path / f"{i}", content, node=f"{parent}/query-{i}")
        store.recover()
        store.claim()
        add(store, 1)
    for node in [f"{parent}/query-{i}" for i, content in enumerate(teams) if content]:
        with plain_server.client() as stranger:
            with pytest.raises(NoAuthError):
                stranger.get(f"{node}/counter")
            with pytest.raises((NoAuthError, NotEmptyError)):
                stranger.delete(node)
    if teams[0] is not None:  # a client without an identity leaves a shared node open to all
        with plain_server.client() as stranger:
            for node in (parent, parent.rpartition("/")[0]):
                with pytest.raises(NoAuthError):
                    stranger.set_acls(node, [make_acl("world", "anyone", read=True)])
                with pytest.raises(NoAuthError):
                    stranger.set(node, b"x")


def test_a_shared_node_that_is_closed_is_named(plain_server: ZooKeeperServer, tmp_path: Path) -> None:
    with plain_server.client() as admin:
        admin.create("/closed")
        admin.create("/closed/shared", acl=[make_digest_acl("team-a", SECRET, all=True)])
    for node in ("/closed/shared/query", "/closed/shared/below/query"):
        store = opened(plain_server, tmp_path, TEAMS[1], node=node)
        store.recover()
        with pytest.raises(
            ZooKeeperAccessError, match=rf"{node.rpartition('/')[0]}: .*may not create.*setAcl"
        ) as raised:
            store.claim()
        no_secret_in(raised.value)


# ---- SASL ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def sasl_server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(
        f'Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required user_spark="{SECRET}"; }};\n'
    )
    with ZooKeeperServer(
        tmp_path / "zookeeper",
        config="authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        java_options=[f"-Djava.security.auth.login.config={jaas}"],
    ) as server:
        yield server


def test_a_driver_logs_in(sasl_server: ZooKeeperServer, tmp_path: Path) -> None:
    works(sasl_server, tmp_path, {"sasl": {"username": "spark", "password": SECRET}})
    with sasl_server.client() as stranger, pytest.raises(NoAuthError):
        stranger.get("/secured/query")
    store = opened(sasl_server, tmp_path, {"sasl": {"username": "spark", "password": "wrong"}}, "c")
    with pytest.raises(SparkCkptError) as raised:
        store.recover()
    assert isinstance(raised.value, ZooKeeperAccessError), repr(raised.value)


# ---- TLS -------------------------------------------------------------------------------------------------------------


class Authority:
    """Certificate authority that issues PEM files.

    Args:
        folder: directory of the PEM files.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(_pem(self._sign(self._name, self._key.public_key(), authority=True)))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Paths of a certificate for 127.0.0.1 and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._sign(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key.public_key())
        certificate, key_file = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate.write_bytes(_pem(signed))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate, key_file

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, authority: bool = False) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def test_the_connection_is_encrypted_and_both_sides_show_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server")
    both = tmp_path / "server-store.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    own, own_key = authority.issue("driver")
    tls = {"ca": str(authority.certificate), "certificate": str(own), "key": str(own_key)}
    security = read_client_file(client_file(tmp_path, {"tls": tls} | DIGEST))
    config = "\n".join(
        [
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            f"ssl.keyStore.location={both}",
            "ssl.keyStore.type=PEM",
            f"ssl.trustStore.location={authority.certificate}",
            "ssl.trustStore.type=PEM",
            "ssl.clientAuth=need",
        ]
    )
    with ZooKeeperServer(
        tmp_path / "zookeeper", config=config, client_options=security.options(), port_name="secureClientPort"
    ) as server:
        works(server, tmp_path, {"tls": tls} | DIGEST)
        stranger = Authority(tmp_path, "stranger")
        for wrong in ({**tls, "ca": str(stranger.certificate)}, {"ca": tls["ca"]}):
            store = opened(server, tmp_path, {"tls": wrong} | DIGEST, "c", timeout=3)
            with pytest.raises(ZooKeeperUnavailableError):
                store.recover()
        plain = KazooClient(server.quorum, timeout=3)
        with pytest.raises(plain.handler.timeout_exception):
            plain.start(3)
        plain.stop()
        plain.close()
