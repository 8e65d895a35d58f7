//! The token that lets viewers connect.

use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::token::given;

/// The name of the file of a token that is made.
pub const FILE: &str = "vnc-token";

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
        given(self.token_file.as_deref(), self.token.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
