//! What `sutura get` says about input that it cannot use: one line that says what to do.

use std::process::Output;

use crate::support::*;

/// Arguments of `sutura get`, the exit code, and the line.
#[rustfmt::skip]
const CASES: &[(&[&str], i32, &str)] = &[
    (&["http://a/"], 2, "error: invalid value 'http://a/' for '<URL>...': only https URLs can be fetched over HTTP/3"),
    (&["https:/a"], 2, "error: invalid value 'https:/a' for '<URL>...': expected a URL such as https://example.org/index.html"),
    (&["ftp://a/"], 2, "error: invalid value 'ftp://a/' for '<URL>...': only https URLs can be fetched over HTTP/3"),
    (&["https://u:p@a/"], 2, "error: invalid value 'https://u:p@a/' for '<URL>...': a URL with a user name is not supported"),
    (&["https://a:0/"], 2, "error: invalid value 'https://a:0/' for '<URL>...': the port is not between 1 and 65535"),
    (&["https://münchen.de/"], 2, "error: invalid value 'https://münchen.de/' for '<URL>...': an international host name must be written in its xn-- form"),
    (&["-H", "X-Tag", "https://a/"], 2, "error: invalid value 'X-Tag' for '--header <'NAME: VALUE'>': expected 'Name: value', 'Name;' for an empty value, or 'Name:' to remove a field"),
    (&["-H", "bad name: x", "https://a/"], 2, "error: invalid value 'bad name: x' for '--header <'NAME: VALUE'>': `bad name` is not the name of a field: expected 'Name: value', 'Name;' for an empty value, or 'Name:' to remove a field"),
    (&["-H", ":path: /x", "https://a/"], 2, "error: invalid value ':path: /x' for '--header <'NAME: VALUE'>': pseudo-header fields are set by -X (:method), -H Host (:authority) and the URL (:scheme, :path)"),
    (&["-H", "Connection: close", "https://a/"], 2, "error: invalid value 'Connection: close' for '--header <'NAME: VALUE'>': HTTP/3 has no field connection: leave it out"),
    (&["-H", "Transfer-Encoding: chunked", "https://a/"], 2, "error: invalid value 'Transfer-Encoding: chunked' for '--header <'NAME: VALUE'>': HTTP/3 has no field transfer-encoding: leave it out"),
    (&["-H", "TE: gzip", "https://a/"], 2, "error: invalid value 'TE: gzip' for '--header <'NAME: VALUE'>': HTTP/3 permits no other te than trailers"),
    (&["-H", "Content-Length: 5", "https://a/"], 2, "error: invalid value 'Content-Length: 5' for '--header <'NAME: VALUE'>': content-length is that of the body, which -d or -T gives: leave it out"),
    (&["-H", "Priority: u=1", "https://a/"], 2, "error: invalid value 'Priority: u=1' for '--header <'NAME: VALUE'>': the priority is set by --priority"),
    (&["-H", "X: a\u{1}b", "https://a/"], 2, "error: invalid value 'X: ab' for '--header <'NAME: VALUE'>': the value of x has a control character, which no field may have"),
    (&["-k", "-H", "Host: a b", "https://a/"], 2, "sutura: -H Host: a b: not a host name"),
    (&["-X", "GE T", "https://a/"], 2, "error: invalid value 'GE T' for '--request <METHOD>': expected a method such as GET, POST or DELETE"),
    (&["-X", "CONNECT", "https://a/"], 2, "error: invalid value 'CONNECT' for '--request <METHOD>': CONNECT opens a tunnel, and fetches no URL: use another method"),
    (&["-d", "a", "-T", "f", "https://a/"], 2, "error: the argument '--data <DATA|@FILE|@->' cannot be used with '--upload-file <FILE|->'"),
    (&["-d", "a", "-I", "https://a/"], 2, "error: the argument '--data <DATA|@FILE|@->' cannot be used with '--head'"),
    (&["-d", "a", "--data-binary", "b", "https://a/"], 2, "error: the argument '--data <DATA|@FILE|@->' cannot be used with '--data-binary <DATA|@FILE|@->'"),
    (&["-I", "-X", "GET", "https://a/"], 2, "error: the argument '--head' cannot be used with '--request <METHOD>'"),
    (&["-A", "a\u{7}", "https://a/"], 2, "error: invalid value 'a' for '--user-agent <NAME>': a control character, which no field may have: leave it out"),
    (&["-e", "a\u{7}", "https://a/"], 2, "error: invalid value 'a' for '--referer <URL>': a control character, which no field may have: leave it out"),
    (&["-r", "9-1", "https://a/"], 2, "error: invalid value '9-1' for '--range <RANGES>': 9-1 ends before it begins"),
    (&["-r", "abc", "https://a/"], 2, "error: invalid value 'abc' for '--range <RANGES>': expected ranges of bytes such as 0-99, 100-, -500 or 0-9,20-29"),
    (&["-r", "0-1", "-C", "-", "https://a/"], 2, "error: the argument '--range <RANGES>' cannot be used with '--continue-at <-|BYTE>'"),
    (&["-C", "x", "https://a/"], 2, "error: invalid value 'x' for '--continue-at <-|BYTE>': expected a number of bytes, or - for the size of the existing file"),
    (&["-k", "-C", "-", "-o", "-", "https://a/"], 2, "sutura: -C - goes by the size of a file: name one by -o, or a number of bytes"),
    (&["-k", "-C", "5", "-o", "no-such-file", "https://a/"], 2, "sutura: no-such-file has 0 bytes, and cannot be continued at byte 5"),
    (&["-k", "-C", "-", "-o", "/dev/null", "https://a/"], 2, "sutura: -C continues regular files, which /dev/null is not"),
    (&["-k", "-C", "-", "-H", "Range: bytes=0-1", "-o", "no-such-file", "https://a/"], 2, "sutura: -C asks for a range of its own: leave out -H Range"),
    (&["-i", "-C", "-", "https://a/"], 2, "error: the argument '--include' cannot be used with '--continue-at <-|BYTE>'"),
    (&["-k", "-u", "me", "https://a/"], 2, "sutura: -u expects NAME:PASSWORD; for an empty password, NAME:"),
    (&["--resolve", "a:443", "https://a/"], 2, "error: invalid value 'a:443' for '--resolve <HOST:PORT:ADDR[,ADDR]>': expected HOST:PORT:ADDR, such as example.org:443:127.0.0.1 or localhost:4433:[::1]"),
    (&["--resolve", "a:443:b", "https://a/"], 2, "error: invalid value 'a:443:b' for '--resolve <HOST:PORT:ADDR[,ADDR]>': `b` is no IP address: expected HOST:PORT:ADDR, such as example.org:443:127.0.0.1 or localhost:4433:[::1]"),
    (&["--resolve", "a:0:127.0.0.1", "https://a/"], 2, "error: invalid value 'a:0:127.0.0.1' for '--resolve <HOST:PORT:ADDR[,ADDR]>': the port is not between 1 and 65535"),
    (&["-4", "-6", "https://a/"], 2, "error: the argument '--ipv4' cannot be used with '--ipv6'"),
    (&["--connect-timeout", "0", "https://a/"], 2, "error: invalid value '0' for '--connect-timeout <SECONDS>': expected 0.001 to 86400 seconds"),
    (&["-m", "soon", "https://a/"], 2, "error: invalid value 'soon' for '--max-time <SECONDS>': expected 0.001 to 86400 seconds"),
    (&["--retry", "many", "https://a/"], 2, "error: invalid value 'many' for '--retry <N>': expected a number from 0 to 65535"),
    (&["--retry-delay", "1", "https://a/"], 2, "sutura: --retry-delay is for further attempts, and there are none: add --retry N"),
    (&["--retry", "1", "--retry-delay=-1", "https://a/"], 2, "error: invalid value '-1' for '--retry-delay <SECONDS>': expected 0 to 86400 seconds"),
    (&["--max-redirs", "3", "https://a/"], 2, "sutura: --max-redirs is for redirections that are followed: add -L"),
    (&["--json", "-o", "-", "https://a/"], 2, "sutura: --json and the responses (--out -) both want standard output: give --out FILE"),
    (&["--json", "-I", "https://a/"], 2, "sutura: --json and the responses (--out -) both want standard output: give --out FILE"),
    (&["-o", "x", "-O", "https://a/"], 2, "error: the argument '--out <DIR|FILE|->' cannot be used with '--remote-name'"),
    (&["-o", "/dev/null", "https://a/", "https://b/"], 2, "sutura: --out /dev/null takes one URL, not 2: it is no directory"),
    (&["https://a/x", "https://b/x"], 2, "sutura: more than one URL would be saved as ./x"),
    (&["-k", "-T", "-", "https://a/", "https://b/"], 2, "sutura: 2 URLs cannot all get what can be read only once: give -T a regular file"),
    (&["--priority", "u=1", "--priority", "u=2", "https://a/"], 2, "sutura: 2 priorities for 1 URLs: give one for all, or one for each"),
    (&["-k", "-T", "/no/such/file", "https://a/"], 3, "sutura: cannot read /no/such/file: it does not exist"),
    (&["-k", "-T", "/", "https://a/"], 3, "sutura: cannot read /: it is a directory"),
    (&["-k", "-d", "@/no/such/file", "https://a/"], 3, "sutura: cannot read /no/such/file: it does not exist"),
    (&["-o", "/no/such/dir/x", "https://a/"], 3, "sutura: cannot write /no/such/dir/x: the directory /no/such/dir does not exist: make it, or say --create-dirs"),
    (&["-o", "/no/such/dir/", "https://a/"], 3, "sutura: cannot write /no/such/dir/: the directory /no/such/dir does not exist: make it, or say --create-dirs"),
    (&["-o", "/dev/null/x", "https://a/"], 3, "sutura: cannot write /dev/null/x: /dev/null is no directory"),
];

/// The first line of the complaint.
fn first_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn every_mistake_is_explained() {
    let scratch = Scratch::new();
    for (args, code, line) in CASES {
        let mut command = sutura(["get"].iter().chain(*args));
        // Where nobody has files of these names.
        command.current_dir(scratch.path());
        let output = Process::spawn(command).output();
        assert_eq!(first_line(&output), *line, "{args:?}");
        assert_eq!(output.status.code(), Some(*code), "{args:?}");
        assert!(output.stdout.is_empty());
    }
    assert!(names(scratch.path()).is_empty());
}
