//! How commands end.

use std::process::ExitCode;

/// The exit codes, for `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    something else went wrong
  2    wrong usage, such as a malformed URL
  3    a local file, directory or address cannot be used
  4    a host name is unknown
  5    no QUIC connection to the server came about
  6    the server's certificate is not trusted
  7    the server answered with a status other than success
  8    a transfer broke off
  130  interrupted";

/// The exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Success = 0,
    Other = 1,
    Usage = 2,
    Local = 3,
    UnknownHost = 4,
    NoConnection = 5,
    Certificate = 6,
    Status = 7,
    Broken = 8,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed: an exit code and one line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    /// Empty if nobody reads the output any more.
    pub message: String,
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub fn local(message: impl Into<String>) -> Self {
        Self::new(Exit::Local, message)
    }

    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_documented() {
        use Exit::*;
        for exit in [
            Success,
            Other,
            Usage,
            Local,
            UnknownHost,
            NoConnection,
            Certificate,
            Status,
            Broken,
            Interrupted,
        ] {
            let code = format!("\n  {:<5}", exit as u8);
            assert_eq!(EXIT_CODES.matches(&code).count(), 1, "{exit:?}");
        }
    }
}
