//! Options from a file, for commands that run as services: the option `--config`.
//!
//! The file is TOML. Its keys are the long names of options, with the values that these take; `true` is an option
//! without a value, and a list is an option that may be repeated. What the command line says counts before the
//! file.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use toml::{Table, Value};

use crate::failure::Failure;

/// The identifier and the name of the option.
const CONFIG: &str = "config";
/// Largest file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The option, for commands that have it.
#[derive(Debug, Clone, clap::Args)]
pub struct ConfigArgs {
    /// Read options from this TOML file, by their names: listen = "[::]:443", listing = true, cache =
    /// ["no-cache"]. The command line counts before it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The arguments of a whole command line with those of the file that it names put in. `command` is the command
/// that is run, and `matches` what was understood of its part of `line`, which ends it.
///
/// # Errors
/// The file cannot be read, or has a key that is no option or a value that no option has.
pub fn expand(
    command: &Command,
    matches: &ArgMatches,
    line: Vec<OsString>,
) -> Result<Vec<OsString>, Failure> {
    let has_option = command.get_arguments().any(|arg| arg.get_id() == CONFIG);
    if !has_option {
        return Ok(line);
    }
    let Some(path) = matches.get_one::<PathBuf>(CONFIG) else { return Ok(line) };
    let table = read(path)?;
    let mut expanded = line;
    for (key, value) in &table {
        let wrong = |what: &str| Failure::usage(format!("{}: {key}: {what}", path.display()));
        let arg = find(command, key).ok_or_else(|| wrong("there is no such option"))?;
        if matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
            continue;
        }
        let values = values(value)
            .ok_or_else(|| wrong("expected a text, a number, true, or a list of texts"))?;
        let takes_values = arg.get_action().takes_values();
        if matches!(value, Value::Boolean(_)) == takes_values {
            let kind = if takes_values { "takes a value" } else { "is true or false" };
            return Err(wrong(kind));
        }
        for value in values {
            match (arg.get_long(), takes_values) {
                (Some(long), true) => expanded.push(format!("--{long}={value}").into()),
                (Some(long), false) => expanded.push(format!("--{long}").into()),
                (None, _) => expanded.push(value.into()),
            }
        }
    }
    Ok(expanded)
}

fn read(path: &Path) -> Result<Table, Failure> {
    let unusable = |problem: &dyn std::fmt::Display| {
        Failure::local(format!("cannot read {}: {problem}", path.display()))
    };
    let size = fs::metadata(path).map_err(|e| unusable(&e))?.len();
    if size > MAX_FILE {
        return Err(unusable(&format_args!("it is larger than {MAX_FILE} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|e| unusable(&e))?;
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.lines().count().max(1);
        Failure::usage(format!("{}:{line}: {}", path.display(), error.message()))
    })
}

/// The option with this name; one without a name is known by that of its value. The file names no other file.
fn find<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    command.get_arguments().filter(|arg| arg.get_id() != CONFIG && arg.get_id() != "help").find(
        |arg| match arg.get_long() {
            Some(long) => long == key,
            None => arg.get_id() == key,
        },
    )
}

/// The values of an option, as the command line has them: none for `false`.
fn values(value: &Value) -> Option<Vec<String>> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    };
    match value {
        Value::Boolean(set) => Some(if *set { vec![String::new()] } else { Vec::new() }),
        Value::Array(values) => values.iter().map(one).collect(),
        other => one(other).map(|value| vec![value]),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser, PartialEq)]
    struct Line {
        directory: Option<PathBuf>,
        #[arg(long)]
        listen: Option<String>,
        #[arg(long, default_value_t = 1)]
        workers: u8,
        #[arg(long)]
        cache: Vec<String>,
        #[arg(short, long)]
        verbose: bool,
        #[arg(long)]
        config: Option<PathBuf>,
    }

    /// What the file and the command line come to.
    fn line(text: &str, args: &[&str]) -> Result<Line, String> {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("c.toml");
        fs::write(&path, text).unwrap();
        let own = ["x", "--config", path.to_str().unwrap()];
        let line: Vec<OsString> = own.iter().chain(args).map(Into::into).collect();
        let command = Line::command();
        let matches = command.clone().try_get_matches_from(&line).unwrap();
        let line = expand(&command, &matches, line).map_err(|failure| failure.message)?;
        Line::try_parse_from(line).map_err(|error| error.to_string())
    }

    const FILE: &str = "directory = \"site\"\nlisten = \"[::]:443\"\nworkers = 4\n\
                        cache = [\"*.css => a\", \"-b\"]\nverbose = true\n";

    #[test]
    fn the_command_line_counts_before_the_file() {
        let all = line(FILE, &[]).unwrap();
        assert_eq!(all.directory, Some("site".into()));
        assert_eq!((all.listen.as_deref(), all.workers), (Some("[::]:443"), 4));
        assert_eq!(
            (all.cache.as_slice(), all.verbose),
            (["*.css => a", "-b"].map(String::from).as_slice(), true)
        );
        let own = line(FILE, &["other", "--workers", "2", "--cache", "c"]).unwrap();
        assert_eq!((own.directory, own.workers), (Some("other".into()), 2));
        assert_eq!((own.cache, own.listen.as_deref()), (vec!["c".into()], Some("[::]:443")));
        assert!(!line("verbose = false", &[]).unwrap().verbose);
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named() {
        for (text, why) in [
            ("a = 1\nlisten = ", ":2: "),
            ("lisen = \"x\"", "lisen: there is no such option"),
            ("config = \"x\"", "config: there is no such option"),
            ("help = true", "help: there is no such option"),
            ("listen = true", "listen: takes a value"),
            ("verbose = \"yes\"", "verbose: is true or false"),
            ("[listen]\na = 1", "listen: expected a text"),
            ("cache = [[\"x\"]]", "cache: expected a text"),
            ("workers = 2000", "2000"),
        ] {
            let error = line(text, &[]).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(read(Path::new("/none/x")).unwrap_err().message.starts_with("cannot read /none/x"));
    }
}
