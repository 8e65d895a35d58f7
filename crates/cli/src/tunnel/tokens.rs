//! The tokens that let clients use a proxy.

use std::path::Path;
use std::sync::Arc;

use sutura_tunnel::server::Identity;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::token::{check, read, same};

/// Most tokens in a file.
const MAX_TOKENS: usize = 4096;
/// The name of a client whose token has none.
const UNNAMED: &str = "client";

/// The tokens that are known, each with the name of its client.
#[derive(Debug, Default)]
pub struct Tokens(Vec<(Identity, Zeroizing<String>)>);

impl Tokens {
    /// One token.
    pub fn one(token: Zeroizing<String>) -> Self {
        Self(vec![(name(UNNAMED), token)])
    }

    /// Reads a file: a token a line, or a name and a token. Lines that begin with `#` are comments.
    ///
    /// # Errors
    /// The file cannot be read, or has no tokens, a line that is something else, or a token that is easily guessed.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let text = read(path)?;
        let mut tokens = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| Failure::usage(format!("{}:{}: {why}", path.display(), at + 1));
            let words: Vec<&str> = line.split_whitespace().collect();
            let (client, token) = match words[..] {
                [token] if tokens.is_empty() => (UNNAMED.to_owned(), token),
                [token] => (format!("{UNNAMED} {}", tokens.len() + 1), token),
                [client, token] => (client.to_owned(), token),
                _ => return Err(wrong("expected a token, or a name and a token")),
            };
            check(token).map_err(|failure| wrong(&failure.message))?;
            if tokens.len() == MAX_TOKENS {
                return Err(wrong(&format!("more than {MAX_TOKENS} tokens")));
            }
            tokens.push((name(&client), Zeroizing::new(token.to_owned())));
        }
        if tokens.is_empty() {
            return Err(Failure::usage(format!("no token in {}", path.display())));
        }
        Ok(Self(tokens))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose token it is. All tokens are compared, so that the time it takes says nothing.
    pub fn find(&self, shown: &str) -> Option<Identity> {
        let mut found = None;
        for (client, token) in &self.0 {
            if same(token, shown) {
                found = Some(client);
            }
        }
        found.cloned()
    }
}

fn name(text: &str) -> Identity {
    Identity(Arc::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Tokens, String> {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("tokens");
        std::fs::write(&path, text).unwrap();
        Tokens::load(&path).map_err(|failure| failure.message)
    }

    #[test]
    fn files_have_a_token_a_line() {
        let [a, b, c] = ["0123456789abcdef0", "0123456789abcdef1", "0123456789abcdef2"];
        let tokens = load(&format!("# who may\n{a}\n\n ann {b}\n{c}\n")).unwrap();
        let names: Vec<String> =
            [a, b, c].iter().map(|token| tokens.find(token).unwrap().to_string()).collect();
        assert_eq!(names, ["client", "ann", "client 3"]);
        assert_eq!(tokens.find("0123456789abcdef"), None);
        for (text, why) in [
            ("", "no token in"),
            ("# nothing", "no token in"),
            ("short", ":1: a token has 16 to 256 bytes"),
            ("a b c", ":1: expected a token"),
        ] {
            let error = load(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
