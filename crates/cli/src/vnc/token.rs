//! The secret that lets viewers connect.

use std::path::{Path, PathBuf};

use rustls::crypto::ring::default_provider;

use crate::cert::write_private;
use crate::failure::{Exit, Failure};

/// Random bytes of a token that is made.
const TOKEN_BYTES: usize = 16;
/// Bytes of the longest token.
const MAX_TOKEN: usize = 256;

/// The options that say which token is expected or shown.
#[derive(Debug, clap::Args)]
pub struct TokenArgs {
    /// Read the token from this file
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// The token; others on this machine may see it in the list of processes, so prefer the file or the variable
    #[arg(long, value_name = "TEXT", env = "SUTURA_VNC_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl TokenArgs {
    /// The token, if one is given.
    ///
    /// # Errors
    /// The file cannot be read, or the token is empty or too long.
    pub fn given(&self) -> Result<Option<String>, Failure> {
        let token = match (&self.token_file, &self.token) {
            (Some(file), _) => Some(read(file)?),
            (None, token) => token.clone(),
        };
        if let Some(token) = &token
            && !(1..=MAX_TOKEN).contains(&token.len())
        {
            return Err(Failure::usage(format!("a token has 1 to {MAX_TOKEN} bytes")));
        }
        Ok(token)
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::local(format!("cannot read {}: {e}", file.display())))?;
    Ok(text.trim().to_owned())
}

/// The token that is kept in a directory; made if there is none.
///
/// # Errors
/// It cannot be read or written.
pub fn keep_in(directory: &Path) -> Result<String, Failure> {
    let path = directory.join("vnc-token");
    if !path.exists() {
        let token = hex::encode(random::<TOKEN_BYTES>()?);
        write_private(directory, &path, &(token + "\n"))?;
    }
    read(&path)
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| Failure::new(Exit::Other, "the system has no random numbers"))?;
    Ok(bytes)
}

/// Whether two tokens are the same. The time it takes says nothing about where they differ.
pub fn same(a: &str, b: &str) -> bool {
    let differ = a.bytes().zip(b.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    a.len() == b.len() && differ == 0
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
        assert!(args("").given().is_err() && args(&"x".repeat(257)).given().is_err());
        assert_eq!(args("x").given().unwrap().as_deref(), Some("x"));
        let missing = TokenArgs { token_file: Some("/nowhere/at/all".into()), token: None };
        assert!(missing.given().is_err());
    }
}
