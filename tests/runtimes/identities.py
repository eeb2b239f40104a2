"""Makes the identities of a secured cluster. Writes an RSA key for the tokens of service accounts into a folder. Prints
the keys and the tokens of users, like an identity provider: `{"jwks": …, "tokens": {NAME: …}}`.

    identities.py FOLDER ISSUER AUDIENCE '{NAME: CLAIMS}'
"""

import json
import sys
import time
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

folder, issuer, audience, users = Path(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])


def key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


accounts = key()
form, public = serialization.PrivateFormat.PKCS8, serialization.PublicFormat.SubjectPublicKeyInfo
private = accounts.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
(folder / "service-accounts.key").write_bytes(private)
(folder / "service-accounts.pub").write_bytes(accounts.public_key().public_bytes(serialization.Encoding.PEM, public))

people = key()
jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(people.public_key()))
jwk = {"kty": jwk["kty"], "n": jwk["n"], "e": jwk["e"], "kid": "people", "alg": "RS256", "use": "sig"}


def token(claims):
    said = {"iss": issuer, "aud": audience, "exp": int(time.time()) + 3600, **claims}
    return jwt.encode(said, people, algorithm="RS256", headers={"kid": "people"})


print(json.dumps({"jwks": {"keys": [jwk]}, "tokens": {name: token(claims) for name, claims in users.items()}}))
