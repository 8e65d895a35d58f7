//! The secret that lets viewers connect.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::file::write_private;
use crate::secrets::random;

/// Random bytes of a token that is made.
const TOKEN_BYTES: usize = 16;
/// Bytes of the shortest token: a shorter one can be guessed.
const MIN_TOKEN: usize = 16;
/// Bytes of the longest token.
const MAX_TOKEN: usize = 256;
/// Different characters in a token: 16 random hexadecimal digits have more.
const MIN_DIFFERENT: usize = 5;
/// How to make one.
const MAKE: &str =
    "make one by `openssl rand -hex 16`, or take the one that `sutura vnc serve` makes";

/// The options that say which token is expected or shown.
#[derive(Debug, clap::Args)]
pub struct TokenArgs {
    /// Read the token from this file
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// The token; others on this machine may see it in the list of processes, so prefer the file or the
    /// variable
    #[arg(long, value_name = "TEXT", env = "SUTURA_VNC_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl TokenArgs {
    /// The token, if the user gave any.
    ///
    /// # Errors
    /// The file cannot be read, or the token is too short, too long or too simple.
    pub fn given(&self) -> Result<Option<Zeroizing<String>>, Failure> {
        let token = match (&self.token_file, &self.token) {
            (Some(file), _) => Some(read(file)?),
            (None, token) => token.clone().map(Zeroizing::new),
        };
        token.as_ref().map_or(Ok(()), |token| check(token))?;
        Ok(token)
    }
}

/// Whether a token is hard to guess.
fn check(token: &str) -> Result<(), Failure> {
    if !(MIN_TOKEN..=MAX_TOKEN).contains(&token.len()) {
        return Err(Failure::usage(format!(
            "a token has {MIN_TOKEN} to {MAX_TOKEN} bytes, this one {}; {MAKE}",
            token.len()
        )));
    }
    let different: BTreeSet<char> = token.chars().collect();
    if different.len() < MIN_DIFFERENT {
        return Err(Failure::usage(format!("the token is easily guessed; {MAKE}")));
    }
    Ok(())
}

fn read(file: &Path) -> Result<Zeroizing<String>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::local(format!("cannot read {}: {e}", file.display())))?;
    Ok(Zeroizing::new(Zeroizing::new(text).trim().to_owned()))
}

/// The token that is kept in a directory; made if there is none.
///
/// # Errors
/// It cannot be read or written.
pub fn keep_in(directory: &Path) -> Result<Zeroizing<String>, Failure> {
    let path = directory.join("vnc-token");
    if !path.exists() {
        let token = Zeroizing::new(hex::encode(random::<TOKEN_BYTES>()?) + "\n");
        write_private(directory, &path, &token)?;
    }
    read(&path)
}

/// Whether two tokens are the same. The time it takes says nothing about where they differ, only whether they
/// have the same length.
pub fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let token = keep_in(scratch.path()).unwrap();
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_eq!(keep_in(scratch.path()).unwrap(), token);
    }

    #[test]
    fn tokens_are_compared() {
        assert!(same("", "") && same("abc", "abc"));
        assert!(!same("abc", "abd") && !same("abc", "ab") && !same("", "a"));
    }

    #[test]
    fn a_token_of_no_use_is_an_error() {
        let args = |token: &str| TokenArgs { token_file: None, token: Some(token.to_owned()) };
        let why = |token: &str| args(token).given().unwrap_err().message;
        for length in [0, 1, 15, 257] {
            let text = why(&"0123456789".repeat(26)[..length]);
            let expected = format!("a token has 16 to 256 bytes, this one {length}; make one by `");
            assert!(text.starts_with(&expected), "{text}");
        }
        assert!(why("aaaaaaaaaaaaaaaaaaaa").contains("easily guessed; make one by `openssl"));
        let good = "0123456789abcdef";
        assert_eq!(args(good).given().unwrap().unwrap().as_str(), good);
        let missing = TokenArgs { token_file: Some("/nowhere/at/all".into()), token: None };
        assert!(missing.given().is_err());
    }
}
