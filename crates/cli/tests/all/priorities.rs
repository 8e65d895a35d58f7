//! Priorities set on the command line and by a file of rules.

use std::fs;
use std::path::Path;

use crate::support::*;

/// A file, the priority that the client wants for it, further options, and the priority in the server's log.
type Case<'a> = (&'a str, &'a [&'a str], &'a str);

/// Fetches each file alone, and checks whether it is protected, and the server's log.
fn check_priorities(server: Listening, out: &Path, cases: &[Case<'_>]) {
    for (name, wish, priority) in cases {
        let url = [server.url(&format!("/{name}"))];
        let report = get_report(&server, &url, out, &[&["--priority"], *wish].concat());
        let expected = priority.contains("exp_b") && !priority.contains("exp_b=0");
        let expected = expected || priority.contains("protect block");
        assert_eq!(is_protected(&report), expected, "{name}, {wish:?}");
    }
    let (output, _) = server.interrupt();
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(log.lines().count(), cases.len(), "{log}");
    for (line, (name, _, priority)) in log.lines().zip(cases) {
        assert!(line.contains(name) && line.ends_with(&format!(" ms, {priority}")), "{line}");
    }
}

/// A rule decides about protection, which is visible from outside, over the wishes of the request
/// and before the server's default.
#[test]
fn rules_override_requests() {
    let (scratch, site, out) = Scratch::with_site();
    for name in ["hero.bin", "plain.bin", "page.html", "other.txt"] {
        fs::write(site.join(name), noise(20_000)).unwrap();
    }
    let rules = scratch.path().join("rules.txt");
    let text = "# what is protected\nhero.*  u=1, exp_b=2\n/plain.*  exp_b=0\n\
                type:text/html  i, exp_b=3\n";
    fs::write(&rules, text).unwrap();
    let options =
        ["--priorities", rules.to_str().unwrap(), "--fec", "1", "--scheduler", "eps", "-v"];
    let server = Listening::serve(&site, &scratch, &options);
    let cases: [Case<'_>; 6] = [
        ("hero.bin", &["exp_b=0"], "u=1, exp_b=2"),
        ("plain.bin", &["exp_b=3"], "exp_b=0"),
        ("page.html", &["u=3"], "i, exp_b=3"),
        // The server's default protection, and the parameters of the request.
        (
            "other.txt",
            &["exp_w=2, exp_p=(a;u=1)"],
            r#"exp_w=2.0, exp_p=("a";u=1); protect exp_b=1"#,
        ),
        ("other.txt", &["exp_b=2"], "exp_b=2"),
        ("other.txt", &["u=4, exp_b=0"], "u=4, exp_b=0"),
    ];
    check_priorities(server, &out, &cases);
}

/// Only urgent responses are protected (Eghbal and Lu 2022), by the urgency that rules leave, unless a
/// rule or the request says otherwise, and before the server's default.
#[test]
fn urgent_responses_are_protected() {
    let (scratch, site, out) = Scratch::with_site();
    for name in ["page.html", "late.html", "bare.css"] {
        fs::write(site.join(name), noise(20_000)).unwrap();
    }
    let rules = scratch.path().join("rules.txt");
    fs::write(&rules, "u=5 => protect 2\nlate.*  u=6\n*.css  exp_b=0\n").unwrap();
    let protect = ["--redundancy", "none", "--protect", "u<3 => protect"];
    let options = [&protect[..], &["--priorities", rules.to_str().unwrap(), "-v"]].concat();
    let server = Listening::serve(&site, &scratch, &options);
    let cases: [Case<'_>; 7] = [
        ("page.html", &["u=2"], "u=2; protect exp_b=3"),
        ("page.html", &["u=3"], "u=3"),
        ("page.html", &["u=5, i"], "u=5, i; protect exp_b=2"),
        ("page.html", &["u=1", "--fec", "0"], "u=1, exp_b=0"),
        ("page.html", &["u=4, exp_b=1"], "u=4, exp_b=1"),
        ("late.html", &["u=0"], "u=6"),
        ("bare.css", &["u=0"], "u=0, exp_b=0"),
    ];
    check_priorities(server, &out, &cases);
}

/// Reed-Solomon blocks protect urgent responses that are not incremental (Eghbal and Lu 2022 and 2025).
#[test]
fn any_policy_protects_what_a_rule_names() {
    let (scratch, site, out) = Scratch::with_site();
    fs::write(site.join("page.html"), noise(20_000)).unwrap();
    let rule = "u<3, !i => protect block:code=rs,source=20,parity=1";
    let options = ["--redundancy", "none", "--protect", rule, "-v"];
    let server = Listening::serve(&site, &scratch, &options);
    let cases: [Case<'_>; 4] = [
        ("page.html", &["u=2"], "u=2; protect block: source=20, parity=1"),
        ("page.html", &["u=2, i"], "u=2, i"),
        ("page.html", &["u=3"], "u=3"),
        ("page.html", &["u=2, exp_b=0"], "u=2, exp_b=0"),
    ];
    check_priorities(server, &out, &cases);
}

/// The log shows the priority that results from rules, requests and defaults.
#[test]
fn the_log_tells_the_priority_of_a_response() {
    let (scratch, site, out) = Scratch::with_site();
    for name in ["page.html", "style.css", "a.png"] {
        fs::write(site.join(name), noise(5_000)).unwrap();
    }
    let rules = scratch.path().join("rules.txt");
    fs::write(&rules, "*.css u=1, exp_w=2\ntype:image/* exp_p=(images;u=5;i), exp_b=0\n").unwrap();
    let options = ["--priorities", rules.to_str().unwrap(), "-v"];
    let server = Listening::serve(&site, &scratch, &options);
    let urls = ["/page.html", "/style.css", "/a.png"].map(|path| server.url(path));
    let wishes = ["--priority", "u=2, i", "--priority", "u=6, i", "--priority", "u=4, exp_b=9"];
    success(&Process::spawn(get(&server, &urls, &out, &wishes)).output());
    let (output, _) = server.interrupt();
    let log = String::from_utf8(output.stderr).unwrap();
    for (name, priority) in [
        ("page.html", "u=2, i"),
        ("style.css", "u=1, i, exp_w=2.0"),
        ("a.png", "u=4, exp_b=0, exp_p=(\"images\";u=5;i)"),
    ] {
        let line = log.lines().find(|line| line.contains(name)).unwrap();
        assert!(line.ends_with(&format!(" ms, {priority}")), "{line}");
    }
}

#[test]
fn a_rule_that_is_none_is_named_by_file_and_line() {
    let scratch = Scratch::new();
    let rules = scratch.path().join("rules.txt");
    let serve = || run(["serve", ".", "--priorities", rules.to_str().unwrap()]);
    let text = complaint(&serve(), 3);
    assert!(text.contains("rules.txt") && text.contains("cannot read"), "{text}");
    fs::write(&rules, "*.css  u=1\n\n*.js  u=1, x=3\n").unwrap();
    let text = complaint(&serve(), 3);
    assert!(
        text.contains("rules.txt:3: invalid priority") && text.contains("x: unknown"),
        "{text}"
    );
}

#[test]
fn every_url_may_have_a_priority_of_its_own() {
    let (scratch, site, out) = Scratch::with_site();
    for name in ["a", "b"] {
        fs::write(site.join(name), noise(20_000)).unwrap();
    }
    let server = Listening::serve(&site, &scratch, &[]);
    let urls = ["/a", "/b"].map(|path| server.url(path));
    let each = ["--priority", r#"u=1, i, exp_p=("web";u=1)"#, "--priority", "u=5, exp_w=0.5"];
    let output = Process::spawn(get(&server, &urls, &out, &each)).output();
    success(&output);
    for name in ["a", "b"] {
        assert_eq!(fs::read(out.join(name)).unwrap(), noise(20_000));
    }
}

/// The schemes of Marx 2020 learn the properties of responses from their types, from the order of the
/// requests, and from rules. A message at the start names the properties that nothing tells them.
#[test]
fn schedulers_are_told_what_responses_are() {
    let (scratch, site, out) = Scratch::with_site();
    for name in ["index.html", "a.png", "late.js"] {
        fs::write(site.join(name), noise(5_000)).unwrap();
    }
    let rules = scratch.path().join("rules.txt");
    fs::write(&rules, "a.*  => resource hero\n*.js  => resource deferred\n/late*  => bucket 0/1\n")
        .unwrap();
    let options = ["--priorities", rules.to_str().unwrap(), "--scheduler", "bucket", "-v"];
    let server = Listening::serve(&site, &scratch, &options);
    for path in ["/", "/a.png", "/late.js", "/index.html"] {
        get_report(&server, &[server.url(path)], &out, &[]);
    }
    let (output, _) = server.interrupt();
    let log = String::from_utf8(output.stderr).unwrap();
    let (untold, log) = log.split_once('\n').unwrap();
    assert!(untold.starts_with("sutura: bucket also goes by "), "{untold}");
    for (aspect, told) in [("(head)", false), ("(critical)", false), ("(hero)", true)] {
        assert_eq!(untold.contains(aspect), !told, "{untold}");
    }
    let expected = ["html main", "image hero", "js deferred bucket 0/1", "html main"];
    assert_eq!(log.lines().count(), expected.len(), "{log}");
    for (line, resource) in log.lines().zip(expected) {
        assert!(line.ends_with(&format!(", u=3, {resource}")), "{line}");
    }
}

/// An image that is asked for first, and a document twice as long, over a link that takes more than a second
/// for the image: a scheduler that shares is done with the image first; a scheduler that knows the document
/// sends the document first.
#[test]
fn a_document_overtakes_an_image_where_the_scheduler_knows_them() {
    let (scratch, site, out) = Scratch::with_site();
    let names = ["/a.png", "/page.html"];
    for (name, bytes) in names.into_iter().zip([400_000, 800_000]) {
        fs::write(site.join(&name[1..]), noise(bytes)).unwrap();
    }
    let first_done = |scheduler: &str| {
        let server = Listening::serve(&site, &scratch, &["--scheduler", scheduler]);
        let link = Listening::link(&server, "rate=3mbit delay=5ms");
        let urls = names.map(|name| link.url(name));
        let report = get_report(&server, &urls, &out, &[]);
        let took = [0, 1].map(|n| report["transfers"][n]["total_ms"].as_f64().unwrap());
        if took[0] < took[1] { "image" } else { "document" }
    };
    assert_eq!(first_done("rr"), "image");
    for scheduler in ["dfifo", "zeroweight"] {
        assert_eq!(first_done(scheduler), "document", "{scheduler}");
    }
}
