//! Secrets that let clients in.

use std::collections::BTreeSet;
use std::path::Path;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::file::write_private;
use crate::secrets::random;

/// Random bytes of a token that is made.
pub const TOKEN_BYTES: usize = 16;
/// Bytes of the shortest token: a shorter one can be guessed.
const MIN_TOKEN: usize = 16;
/// Bytes of the longest token.
const MAX_TOKEN: usize = 256;
/// Different characters in a token: 16 random hexadecimal digits have more.
const MIN_DIFFERENT: usize = 5;
/// How to make one.
const MAKE: &str =
    "make one by `openssl rand -hex 16`, or take the one that the server's command makes";

/// Whether a token is hard to guess.
///
/// # Errors
/// It is not: says how to make one.
pub fn check(token: &str) -> Result<(), Failure> {
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

/// The token that a file or else a text has, if there is any.
///
/// # Errors
/// The file cannot be read, or the token is too short, too long or too simple.
pub fn given(
    file: Option<&Path>,
    text: Option<&str>,
) -> Result<Option<Zeroizing<String>>, Failure> {
    let token = match (file, text) {
        (Some(file), _) => Some(read(file)?),
        (None, text) => text.map(|text| Zeroizing::new(text.to_owned())),
    };
    token.as_ref().map_or(Ok(()), |token| check(token))?;
    Ok(token)
}

/// The text of a file of secrets, without blanks around it.
///
/// # Errors
/// It cannot be read.
pub fn read(file: &Path) -> Result<Zeroizing<String>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::local(format!("cannot read {}: {e}", file.display())))?;
    Ok(Zeroizing::new(Zeroizing::new(text).trim().to_owned()))
}

/// The token that is kept in a directory under this name; made if there is none.
///
/// # Errors
/// It cannot be read or written.
pub fn keep_in(directory: &Path, name: &str) -> Result<Zeroizing<String>, Failure> {
    let path = directory.join(name);
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
        let token = keep_in(scratch.path(), "x").unwrap();
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_eq!(keep_in(scratch.path(), "x").unwrap(), token);
    }

    #[test]
    fn tokens_are_compared() {
        assert!(same("", "") && same("abc", "abc"));
        assert!(!same("abc", "abd") && !same("abc", "ab") && !same("", "a"));
    }
}
