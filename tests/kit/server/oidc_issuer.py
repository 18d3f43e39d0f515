"""An issuer of ID tokens: keys, documents, tokens."""

from __future__ import annotations

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER = "https://login.example"
_RSA = [rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2)]


class Issuer:
    """Signs tokens with the key whose name is asked for, and says which keys it has."""

    def __init__(self, url: str = ISSUER) -> None:
        self.url = url
        self.keys: dict[str, Any] = {"one": _RSA[0]}
        # Everything that was fetched.
        self.fetched: list[str] = []

    def rotate(self, name: str, key: Any = _RSA[1]) -> None:
        """Have the key *name* and no other."""
        self.keys = {name: key}

    def document(self) -> dict[str, Any]:
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}

    def jwks(self) -> dict[str, Any]:
        return {"keys": [public_entry(name, key) for name, key in self.keys.items()]}

    def token(self, key: str = "one", algorithm: str = "RS256", **claims: Any) -> str:
        said = {"iss": self.url, "aud": "skerry", "sub": "alice", "exp": 4_000_000_000, **claims}
        said = {name: value for name, value in said.items() if value is not ...}
        return jwt.encode(said, self.keys[key], algorithm, headers={"kid": key})

    async def fetch(self, url: str) -> bytes:
        """Answer as over the network."""
        self.fetched.append(url)
        found = self.jwks() if url.endswith("/keys") else self.document()
        return json.dumps(found).encode()


def public_entry(name: str, key: Any) -> dict[str, Any]:
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        made = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(public))
    else:
        assert isinstance(public, ec.EllipticCurvePublicKey)
        made = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(public))
    return {**made, "kid": name, "use": "sig"}
