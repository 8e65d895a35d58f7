//! The certificates of the server.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

use crate::Error;

/// How many alternative names a certificate of a long chain has, so that six certificates take more bytes
/// than a server may send at first.
const NAMES: usize = 48;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(n: usize, by: Option<&Issuer>, names: usize) -> Result<Issuer, Error> {
    let names: Vec<_> =
        (0..names).map(|name| format!("{name}.authority-{n}.example.org")).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, format!("Interoperability {n}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate()?;
    Ok(match by {
        Some(issuer) => CertifiedIssuer::signed_by(params, key, issuer)?,
        None => CertifiedIssuer::self_signed(params, key)?,
    })
}

/// Writes `cert.pem`, `priv.key` and `ca.pem` for `localhost`, with `chain` certificates in the chain, not
/// counting the authority's. Returns the size of all certificates in DER.
pub fn write(directory: &Path, chain: usize) -> Result<usize, Error> {
    let root = authority(0, None, 0)?;
    let mut issuers: Vec<Issuer> = Vec::new();
    for n in 1..chain {
        issuers.push(authority(n, Some(issuers.last().unwrap_or(&root)), NAMES)?);
    }
    let key = KeyPair::generate()?;
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "localhost");
    let leaf = params.signed_by(&key, issuers.last().unwrap_or(&root))?;
    let above = issuers.iter().rev().map(|issuer| issuer.pem());
    let pem: String = std::iter::once(leaf.pem()).chain(above).collect();
    fs::write(directory.join("cert.pem"), pem)?;
    fs::write(directory.join("priv.key"), key.serialize_pem())?;
    fs::write(directory.join("ca.pem"), root.pem())?;
    let above: usize = issuers.iter().map(|issuer| issuer.der().len()).sum();
    Ok(leaf.der().len() + above)
}
