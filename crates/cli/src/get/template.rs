//! What is asked of every URL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use base64::prelude::{BASE64_STANDARD, Engine};
use zeroize::Zeroizing;

use super::delivery::Resumption;
use super::header_line::{HeaderLine, field_value, is_token};
use super::payload::Payload;
use super::range::ByteRanges;
use super::redirect::Hop;
use crate::failure::Failure;
use crate::url::{Authority, Url};

/// The name of this program in requests.
const USER_AGENT: &str = concat!("sutura/", env!("CARGO_PKG_VERSION"));
/// Fields that are for one server only, and not for those to which it redirects.
const SECRETS: [&str; 2] = ["authorization", "cookie"];
/// The port that an `:authority` without one has.
const HTTPS_PORT: u16 = 443;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request")]
pub struct TemplateArgs {
    /// Use this method instead of GET, POST or PUT, also after redirections
    #[arg(short = 'X', long, value_name = "METHOD", value_parser = method)]
    request: Option<String>,
    /// Send this field. 'Name;' sends an empty one, 'Name:' leaves out one that is sent otherwise; Host
    /// sets the :authority
    #[arg(short = 'H', long, value_name = "'NAME: VALUE'")]
    header: Vec<HeaderLine>,
    /// POST this data, or the content of a file without its line breaks; several are joined by &
    #[arg(short, long, value_name = "DATA|@FILE|@-", conflicts_with_all = ["data_binary", "upload_file", "head"])]
    data: Vec<String>,
    /// POST this data, or the content of a file as it is
    #[arg(long, value_name = "DATA|@FILE|@-", conflicts_with_all = ["upload_file", "head"])]
    data_binary: Vec<String>,
    /// PUT this file, or standard input; a URL that ends in a slash gets its name
    #[arg(short = 'T', long, value_name = "FILE|-", conflicts_with = "head")]
    upload_file: Option<PathBuf>,
    /// Ask for the head of the response alone (HEAD), and write it to standard output
    #[arg(short = 'I', long, conflicts_with = "request")]
    pub head: bool,
    /// Ask for these bytes alone, such as 0-99, 100- or -500
    #[arg(short, long, value_name = "RANGES", conflicts_with = "continue_at")]
    range: Option<ByteRanges>,
    /// Send this user-agent
    #[arg(short = 'A', long, value_name = "NAME", value_parser = field_value)]
    user_agent: Option<String>,
    /// Send this referer
    #[arg(short = 'e', long, value_name = "URL", value_parser = field_value)]
    referer: Option<String>,
    /// Send this name and password (Basic, RFC 7617), which are not shown, and not sent to other servers.
    /// Other users of this machine may see the command line
    #[arg(short, long, value_name = "NAME:PASSWORD")]
    user: Option<Credentials>,
}

impl TemplateArgs {
    /// Whether the response is an answer to data that is sent.
    pub fn sends(&self) -> bool {
        !self.data.is_empty() || !self.data_binary.is_empty() || self.upload_file.is_some()
    }

    /// Fixes what is asked, reading what is sent as `--data`.
    ///
    /// # Errors
    /// A file cannot be read, or `Host` is malformed.
    pub fn template(self) -> Result<Template, Failure> {
        let payload = match &self.upload_file {
            Some(path) => Payload::of_upload(path)?,
            None if self.data.is_empty() => Payload::of_data(&self.data_binary, true)?,
            None => Payload::of_data(&self.data, false)?,
        };
        let host = self.header.iter().rfind(|line| line.name == "host");
        let host = host.and_then(|line| line.value.as_deref()).map(authority).transpose()?;
        let upload_name = self.upload_file.as_deref().and_then(|path| path.file_name());
        let upload_name = upload_name.filter(|name| *name != "-");
        Ok(Template {
            usual: usual_method(self.head, self.upload_file.is_some(), &payload),
            upload_name: upload_name.map(|name| name.to_string_lossy().into_owned()),
            method: self.request,
            lines: self.header,
            payload,
            host,
            range: self.range,
            user_agent: self.user_agent,
            referer: self.referer,
            user: self.user,
        })
    }
}

fn usual_method(head: bool, uploads: bool, payload: &Payload) -> &'static str {
    match payload {
        _ if head => "HEAD",
        Payload::Nothing => "GET",
        _ if uploads => "PUT",
        Payload::Data(_) | Payload::File(_) | Payload::Once(..) => "POST",
    }
}

fn authority(value: &str) -> Result<String, Failure> {
    let authority = Authority::parse(value, HTTPS_PORT);
    let authority = authority.map_err(|why| Failure::usage(format!("-H Host: {value}: {why}")))?;
    Ok(authority.to_string())
}

/// Reads a method.
fn method(text: &str) -> Result<String, &'static str> {
    if !is_token(text) {
        return Err("expected a method such as GET, POST or DELETE");
    }
    if text == "CONNECT" {
        return Err("CONNECT opens a tunnel, and fetches no URL: use another method");
    }
    Ok(text.to_owned())
}

/// A user name and a password.
#[derive(Clone)]
pub struct Credentials(Zeroizing<String>);

impl Credentials {
    /// The value of the `authorization` field.
    fn field(&self) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// Reads credentials. No error has them, but clap shows the argument in front of every error, so that it must not
/// fail: what has no password is told later.
impl FromStr for Credentials {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned().into()))
    }
}

/// What is asked of every URL.
#[derive(Debug)]
pub struct Template {
    /// The method without `--request`.
    usual: &'static str,
    /// The method of `--request`.
    method: Option<String>,
    lines: Vec<HeaderLine>,
    pub payload: Payload,
    /// The name of the file that is uploaded.
    upload_name: Option<String>,
    host: Option<String>,
    range: Option<ByteRanges>,
    user_agent: Option<String>,
    referer: Option<String>,
    user: Option<Credentials>,
}

impl Template {
    /// Checks what only all options together tell.
    ///
    /// # Errors
    /// They do not go together.
    pub fn check(&self, urls: usize, continues: bool) -> Result<(), Failure> {
        if self.user.as_ref().is_some_and(|user| !user.0.contains(':')) {
            return Err(Failure::usage("-u expects NAME:PASSWORD; for an empty password, NAME:"));
        }
        if continues && self.has_own_range() {
            return Err(Failure::usage("-C asks for a range of its own: leave out -H Range"));
        }
        if urls > 1 && matches!(self.payload, Payload::Once(..)) {
            return Err(Failure::usage(format!(
                "{urls} URLs cannot all get what can be read only once: give -T a regular file"
            )));
        }
        Ok(())
    }

    /// The URL that is meant: an upload to a directory gets the name of the file.
    pub fn target_of(&self, url: &Url) -> Url {
        self.upload_name.as_ref().map_or_else(|| url.clone(), |name| url.for_file(name))
    }

    /// Whether the user asks for a part, so that the rest of a response cannot be asked for.
    pub fn has_own_range(&self) -> bool {
        self.range.is_some() || self.lines.iter().any(|line| line.name == "range")
    }

    /// Whether the method is the user's own, which redirections do not change.
    pub fn keeps_method(&self) -> bool {
        self.method.is_some()
    }

    /// The first request for a URL.
    pub fn first_hop(&self, url: Url) -> Hop {
        let method = self.method.clone().unwrap_or_else(|| self.usual.into());
        Hop { url, method, sends: self.payload.exists(), is_home: true, is_stripped: false }
    }

    /// The `:authority` of a request. That of the user is for the first server.
    pub fn authority(&self, hop: &Hop) -> String {
        let own = self.host.as_ref().filter(|_| hop.is_home);
        own.cloned().unwrap_or_else(|| hop.url.authority.to_string())
    }

    /// The fields of a request with a body of this length, if it has one whose length is known.
    pub fn fields(
        &self,
        hop: &Hop,
        length: Option<u64>,
        resumption: Option<&Resumption>,
    ) -> Vec<(String, String)> {
        let mut usual: Vec<(&str, String)> = vec![
            ("user-agent", self.user_agent.clone().unwrap_or_else(|| USER_AGENT.into())),
            ("accept", "*/*".into()),
        ];
        usual.extend(self.user.as_ref().map(|user| ("authorization", user.field())));
        usual.extend(self.referer.clone().map(|referer| ("referer", referer)));
        usual.extend(self.range.as_ref().map(|range| ("range", range.field())));
        if let Some(Resumption { from, etag }) = resumption {
            usual.push(("range", format!("bytes={from}-")));
            usual.extend(etag.clone().map(|etag| ("if-range", etag)));
        }
        if hop.sends && self.usual == "POST" {
            usual.push(("content-type", "application/x-www-form-urlencoded".into()));
        }
        let is_own = |name: &str| self.lines.iter().any(|line| line.name == name);
        let usual = usual.into_iter().filter(|(name, _)| !is_own(name));
        let usual = usual.map(|(name, value)| (name.to_owned(), value));
        let own = self.lines.iter().filter(|line| line.name != "host");
        let own = own.filter_map(|line| Some((line.name.clone(), line.value.clone()?)));
        let length = length.map(|length| ("content-length".to_owned(), length.to_string()));
        let all = usual.chain(own).chain(length);
        all.filter(|(name, _)| permits(hop, name)).collect()
    }
}

/// Whether a field goes with a request.
fn permits(hop: &Hop, name: &str) -> bool {
    (hop.is_home || !SECRETS.contains(&name)) && !(hop.is_stripped && name == "content-type")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: TemplateArgs,
        #[arg(short = 'C')]
        continue_at: Option<String>,
    }

    fn template(args: &[&str]) -> Template {
        let line = Line::try_parse_from([&["get"], args].concat()).unwrap();
        line.args.template().unwrap()
    }

    fn hop(template: &Template) -> Hop {
        template.first_hop("https://example.org/a".parse().unwrap())
    }

    /// The fields of the first request, a line each.
    fn fields(args: &[&str]) -> Vec<String> {
        let template = template(args);
        let fields = template.fields(&hop(&template), None, None);
        fields.iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn the_method_is_that_of_the_body_or_the_users() {
        for (args, method) in [
            (&[][..], "GET"),
            (&["-I"], "HEAD"),
            (&["-d", "a=b"], "POST"),
            (&["--data-binary", "a=b"], "POST"),
            (&["-T", "-"], "PUT"),
            (&["-X", "DELETE"], "DELETE"),
            (&["-X", "PATCH", "-d", "a"], "PATCH"),
        ] {
            assert_eq!(hop(&template(args)).method, method, "{args:?}");
        }
    }

    #[test]
    fn fields_of_the_user_come_instead_of_the_usual_ones() {
        let agent = format!("user-agent: {USER_AGENT}");
        assert_eq!(fields(&[]), [agent.as_str(), "accept: */*"]);
        assert_eq!(fields(&["-H", "Accept:", "-A", "me"]), ["user-agent: me"]);
        assert_eq!(
            fields(&["-H", "User-Agent: x", "-A", "y", "-H", "Accept;"]),
            ["user-agent: x", "accept: "]
        );
        let some =
            fields(&["-e", "https://a/", "-r", "0-9", "-H", "X: 1", "-H", "X: 2", "-H", "Host: b"]);
        let expected = ["referer: https://a/", "range: bytes=0-9", "x: 1", "x: 2"];
        assert_eq!(some[2..], expected);
        // RFC 7617, section 2.
        let aladdin = "authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==";
        assert_eq!(fields(&["-u", "Aladdin:open sesame"])[2..], [aladdin]);
        let form = "content-type: application/x-www-form-urlencoded";
        assert_eq!(fields(&["-d", "a=b"])[2..], [form]);
        assert_eq!(
            fields(&["-d", "{}", "-H", "Content-Type: application/json"])[2..],
            ["content-type: application/json"]
        );
    }

    #[test]
    fn secrets_stay_at_home_and_a_lost_body_has_no_type() {
        let args = ["-u", "a:b", "-H", "Cookie: c=d", "-H", "X: y", "-H", "Host: h:1", "-d", "e"];
        let template = template(&args);
        let names = |hop: &Hop| -> Vec<String> {
            template.fields(hop, None, None).into_iter().map(|(name, _)| name).collect()
        };
        let home = hop(&template);
        let all = ["user-agent", "accept", "authorization", "content-type", "cookie", "x"];
        assert_eq!(names(&home), all);
        assert_eq!(template.authority(&home), "h:1");
        let away = Hop { is_home: false, is_stripped: true, sends: false, ..home };
        assert_eq!(names(&away), ["user-agent", "accept", "x"]);
        assert_eq!(template.authority(&away), "example.org");
    }

    #[test]
    fn the_rest_of_a_response_is_asked_for_with_its_validator() {
        let template = template(&[]);
        let rest = Resumption { from: 7, etag: Some("\"x\"".into()) };
        let fields = template.fields(&hop(&template), Some(5), Some(&rest));
        let shown: Vec<String> = fields.iter().map(|(n, v)| format!("{n}: {v}")).collect();
        assert_eq!(shown[2..], ["range: bytes=7-", "if-range: \"x\"", "content-length: 5"]);
    }

    #[test]
    fn credentials_are_not_shown() {
        let template = template(&["-u", "someone:secret"]);
        let shown = format!("{template:?}");
        assert!(!shown.contains("secret") && !shown.contains("someone"), "{shown}");
    }
}
