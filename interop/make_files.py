"""Makes what a run needs: a certificate for localhost, and files of several sizes."""

import base64
import datetime
import hashlib
import ipaddress
import random
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SIZES = [0, 1, 1199, 65_536, 1_500_000, 5_000_000]


def make_certificate(directory: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost"), address]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    (directory / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (directory / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    # Chromium is told by this to trust the certificate.
    pin = base64.b64encode(hashlib.sha256(public).digest())
    (directory / "key.sha256").write_bytes(pin)


def main() -> None:
    directory = Path(sys.argv[1])
    make_certificate(directory)
    files = directory / "files"
    files.mkdir()
    generator = random.Random(1)
    for size in SIZES:
        (files / f"{size}.bin").write_bytes(generator.randbytes(size))


if __name__ == "__main__":
    main()
