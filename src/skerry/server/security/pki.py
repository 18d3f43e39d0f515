"""The server's own certificate authority, and the certificates it makes.

Created on first start under ``DIR/pki`` and kept: the CA is what every kubeconfig trusts, so it
is only ever read again. Leaf certificates are renewed when they near their end or when the names
they must carry have changed. Keys are EC P-256: a handshake costs a fraction of RSA's.

During a rotation ``ca.crt`` and ``ca.key`` hold two authorities, and a certificate of the new one
that the old one has signed. The server sends that along with its own, so a client that trusts
either authority trusts the server.

Validity begins two days in the past: an edge whose clock runs behind must still be able to
connect in its first minute.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from skerry.kit.clock import Clock, SystemClock
from skerry.kit.secret_files import secret_directory, write_secret
from skerry.logic.machinery.key_rotation import SigningRecord
from skerry.server.security.pem import blocks, key_id

_BACKDATED = timedelta(days=2)
_CA_VALID = timedelta(days=3650)
_LEAF_VALID = timedelta(days=365)
# A server that is restarted a few times a year never meets the end of a certificate.
_RENEW_BEFORE = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Credential:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    @property
    def x509(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate)


@dataclass(frozen=True, slots=True)
class Pki:
    """All a server needs to prove itself and to let its administrator in.

    ``ca`` signs; ``bundle`` are the authorities that are trusted, PEM, that one first; ``known``
    the names of those whose keys are there.
    """

    directory: Path
    ca: Credential
    server: Credential
    admin: Credential
    bundle: bytes
    known: tuple[str, ...]

    @property
    def current(self) -> str:
        """Name of the authority that signs."""
        return certificate_name(self.ca.certificate)

    @property
    def authorities(self) -> tuple[x509.Certificate, ...]:
        return _read(self.bundle)


@lru_cache(maxsize=4)
def _read(bundle: bytes) -> tuple[x509.Certificate, ...]:
    """Return the authorities in a bundle, which are asked for with each client's certificate."""
    return tuple(x509.load_pem_x509_certificates(bundle))


def server_names(extra: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names and addresses a server answers to: loopback, this host, the names pods
    use, and *extra*."""
    names = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "127.0.0.1",
        "::1",
        socket.gethostname(),
        *extra,
    ]
    return tuple(dict.fromkeys(name for name in names if name))


def open_pki(
    directory: Path,
    names: Sequence[str],
    clock: Clock | None = None,
    record: SigningRecord | None = None,
) -> Pki:
    """Return the PKI kept in *directory*, creating or renewing what is missing or due.

    The *record* says which of several authorities signs, and which are retired; without one the
    first signs and none is.
    """
    clock = clock or SystemClock()
    secret_directory(directory)
    files = read_authorities(directory)
    if not files.credentials:
        _kept(directory, "ca", new_ca("skerry-ca", clock))
        files = read_authorities(directory)
    retired = record.retired if record is not None else ()
    usable = [name for name in files.credentials if name not in retired] or list(files.credentials)
    current = record.current if record is not None and record.current in usable else usable[0]
    ca = files.credentials[current]
    trusted = {current: ca.certificate} | {
        name: pem for name, pem in files.roots.items() if name not in retired
    }
    authority = Authority(ca, clock)
    chain = b"".join(files.cross_signed(current, trusted.values()))
    server = _stored(directory, "server")
    if server is None or authority.is_due(server) or _names_of(server) != set(names):
        server = authority.server(names[0], names)
    leaf = blocks(server.certificate, "CERTIFICATE")[0]
    if server != _stored(directory, "server") or server.certificate != leaf + chain:
        server = _kept(directory, "server", Credential(leaf + chain, server.key))
    admin = _stored(directory, "admin")
    if admin is None or authority.is_due(admin):
        admin = _kept(directory, "admin", authority.client("kubernetes-admin", ("system:masters",)))
    return Pki(directory, ca, server, admin, b"".join(trusted.values()), tuple(files.credentials))


def open_front_proxy(directory: Path, clock: Clock) -> tuple[Credential, Credential]:
    """Return an authority kept in *directory*, and the certificate shown to aggregated servers.

    They believe whoever shows one of this authority's, so it signs nothing else.
    """
    secret_directory(directory)
    ca = _stored(directory, "front-proxy-ca")
    if ca is None:
        ca = _kept(directory, "front-proxy-ca", new_ca("skerry-front-proxy-ca", clock))
    authority, name = Authority(ca, clock), "front-proxy-client"
    client = _stored(directory, name)
    if client is None or authority.is_due(client):
        client = _kept(directory, name, authority.client(name))
    return ca, client


@dataclass(frozen=True, slots=True)
class AuthorityFiles:
    """What ``ca.crt`` and ``ca.key`` hold, each authority under the name of its key.

    ``credentials`` are those with their keys, ``roots`` all self-signed certificates, ``crossed``
    the certificates of one authority that another has signed.
    """

    credentials: dict[str, Credential]
    roots: dict[str, bytes]
    crossed: tuple[tuple[str, bytes], ...]

    def cross_signed(self, name: str, by: Iterable[bytes]) -> list[bytes]:
        """Return the certificates of the authority *name* that one of *by* has signed."""
        signers = [x509.load_pem_x509_certificate(pem) for pem in by]
        return [
            pem
            for subject, pem in self.crossed
            if subject == name
            and any(is_issued_by(x509.load_pem_x509_certificate(pem), each) for each in signers)
        ]


def read_authorities(directory: Path) -> AuthorityFiles:
    """Return the authorities kept in *directory*; none when there are none."""
    certificates, keys = directory / "ca.crt", directory / "ca.key"
    if not certificates.exists():
        return AuthorityFiles({}, {}, ())
    roots: dict[str, bytes] = {}
    crossed: list[tuple[str, bytes]] = []
    for pem in blocks(certificates.read_bytes(), "CERTIFICATE"):
        certificate, name = x509.load_pem_x509_certificate(pem), certificate_name(pem)
        if certificate.subject == certificate.issuer:
            roots.setdefault(name, pem)
        else:
            crossed.append((name, pem))
    found = blocks(keys.read_bytes(), "PRIVATE KEY") if keys.exists() else []
    private = {private_key_name(pem): pem for pem in found}
    credentials = {n: Credential(pem, private[n]) for n, pem in roots.items() if n in private}
    return AuthorityFiles(credentials, roots, tuple(crossed))


def certificate_name(pem: bytes) -> str:
    """Return the name of the key that a certificate is for."""
    return key_id(x509.load_pem_x509_certificate(pem).public_key())


def private_key_name(pem: bytes) -> str:
    """Return the name of a private key, which is that of its public half."""
    key = serialization.load_pem_private_key(pem, password=None)
    return key_id(key.public_key())  # type: ignore[arg-type]  # any key that can sign


def is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Tell whether *authority* has signed *certificate* itself."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def cross_signed(new: Credential, old: Credential, clock: Clock) -> bytes:
    """Return a certificate, PEM, by which *old* vouches for the authority *new*."""
    certificate, issuer = new.x509, old.x509
    key = serialization.load_pem_private_key(old.key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"CA key: want an EC key, found {type(key).__name__}")
    ends = min(certificate.not_valid_after_utc, issuer.not_valid_after_utc)
    terms = _Terms(clock.now() - _BACKDATED, ends, x509.random_serial_number())
    public = certificate.public_key()
    builder = _ca_builder(certificate.subject, issuer.subject, public, terms)
    by = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    signed = builder.add_extension(by, critical=False).sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def new_ca(name: str, clock: Clock) -> Credential:
    """Return a fresh, self-signed certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _ca_builder(subject, subject, key.public_key(), _terms(clock, _CA_VALID))
    return _credential(builder.sign(key, hashes.SHA256()), key)


def _ca_builder(
    subject: x509.Name, issuer: x509.Name, public_key: object, terms: _Terms
) -> x509.CertificateBuilder:
    identifier = x509.SubjectKeyIdentifier.from_public_key(public_key)  # type: ignore[arg-type]
    return (
        _builder(subject, issuer, public_key, terms)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(key_cert_sign=True), critical=True)
        .add_extension(identifier, critical=False)
    )


class Authority:
    """Signs certificates with a CA."""

    def __init__(self, ca: Credential, clock: Clock) -> None:
        self._clock = clock
        self._certificate = ca.x509
        key = serialization.load_pem_private_key(ca.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"CA key: want an EC key, found {type(key).__name__}")
        self._key = key

    def server(self, common_name: str, names: Sequence[str]) -> Credential:
        """Return a certificate for serving under *names* (host names and IP addresses)."""
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        return self._leaf(common_name, (), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: str, groups: Sequence[str] = ()) -> Credential:
        """Return a certificate that makes its holder *user*, member of *groups*."""
        return self._leaf(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def sign_request(
        self,
        request: x509.CertificateSigningRequest,
        valid: timedelta = _LEAF_VALID,
        *,
        backdated: timedelta = _BACKDATED,
        serial: int | None = None,
        purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
        alternatives: x509.SubjectAlternativeName | None = None,
        enciphers: bool = False,
    ) -> bytes:
        """Return a certificate, PEM, for the subject and key of *request*; a client's by default.

        The caller has decided that this subject, and *alternatives*, may be had; only the
        signature is checked. *enciphers* says that the key may also encipher keys.
        """
        if not request.is_signature_valid:
            raise InvalidSignature("certificate signing request: the signature does not fit")
        now = self._clock.now()
        ends = min(now + valid, self._certificate.not_valid_after_utc)
        terms = _Terms(now - backdated, ends, serial or x509.random_serial_number())
        usage = _usage(digital_signature=True, key_encipherment=enciphers)
        builder = self._leaf_builder(request.subject, request.public_key(), terms, purpose, usage)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM)

    def is_due(self, credential: Credential) -> bool:
        """Tell whether a certificate is near its end or was not signed by this CA."""
        certificate = credential.x509
        if not is_issued_by(certificate, self._certificate):
            return True
        return self._clock.now() > certificate.not_valid_after_utc - _RENEW_BEFORE

    def _leaf(
        self,
        common_name: str,
        organizations: Sequence[str],
        purpose: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> Credential:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                *[x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations],
                x509.NameAttribute(NameOID.COMMON_NAME, common_name),
            ]
        )
        terms = _terms(self._clock, _LEAF_VALID)
        builder = self._leaf_builder(subject, key.public_key(), terms, purpose)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        return _credential(builder.sign(self._key, hashes.SHA256()), key)

    def _leaf_builder(
        self,
        subject: x509.Name,
        public_key: object,
        terms: _Terms,
        purpose: x509.ObjectIdentifier,
        usage: x509.KeyUsage | None = None,
    ) -> x509.CertificateBuilder:
        issuer = self._certificate.subject
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            _builder(subject, issuer, public_key, terms)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage or _usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(identifier, critical=False)
        )


class _Terms(NamedTuple):
    """When a certificate is valid, and under which number."""

    begins: datetime
    ends: datetime
    serial: int


def _terms(clock: Clock, valid: timedelta) -> _Terms:
    now = clock.now()
    return _Terms(now - _BACKDATED, now + valid, x509.random_serial_number())


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: object, terms: _Terms
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)  # type: ignore[arg-type]  # any key cryptography knows
        .serial_number(terms.serial)
        .not_valid_before(terms.begins)
        .not_valid_after(terms.ends)
    )


def _usage(
    *,
    digital_signature: bool = False,
    key_cert_sign: bool = False,
    key_encipherment: bool = False,
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature or key_cert_sign,
        key_cert_sign=key_cert_sign,
        crl_sign=key_cert_sign,
        content_commitment=False,
        key_encipherment=key_encipherment,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names_of(credential: Credential) -> set[str]:
    extension = credential.x509.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    hosts = extension.value.get_values_for_type(x509.DNSName)
    addresses = extension.value.get_values_for_type(x509.IPAddress)
    return {*hosts, *(str(address) for address in addresses)}


def _credential(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Credential:
    return Credential(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _stored(directory: Path, name: str) -> Credential | None:
    """Return a kept credential; None unless both halves are there.

    The key is written first: a crash between the two leaves no certificate without its key.
    """
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    if not certificate.exists() or not key.exists():
        return None
    credential = Credential(certificate.read_bytes(), key.read_bytes())
    return credential if _fits(credential) else None


def _fits(credential: Credential) -> bool:
    """Tell whether key and certificate belong together; a crash during renewal parts them."""
    key = serialization.load_pem_private_key(credential.key, password=None)
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    own = credential.x509.public_key().public_bytes(*form)
    return key.public_key().public_bytes(*form) == own


def _kept(directory: Path, name: str, credential: Credential) -> Credential:
    write_secret(directory / f"{name}.key", credential.key)
    write_secret(directory / f"{name}.crt", credential.certificate)
    return credential
