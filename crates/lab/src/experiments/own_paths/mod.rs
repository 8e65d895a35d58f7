//! Paths and applications that the user describes, with policies that the user names.

mod report;

use sutura_proto::Algorithm;

use super::auto_zoo::{ZooApp, ZooCase, lineups, measure};
use crate::own::OwnPath;
use crate::report::Report;
use crate::{Error, Options};

/// Runs of each application over each path with each policy, unless the options name a number.
const SEEDS: u64 = 20;
/// The policies, unless the options name some.
const POLICIES: [&str; 3] = ["auto", "tail:burst=1", "incremental:burst=3"];
/// The paths, unless the options describe some: a crowded Wi-Fi, a mobile access and a satellite.
const PATHS: [&str; 3] = [
    "rate=30mbit delay=8ms queue=60kb jitter=2ms loss=ge:0.01,0.4,0.5,0.0005",
    "rate=12mbit delay=35ms queue=150kb loss=gt:2000,25,0.8,0.0005 | back rate=4mbit delay=35ms queue=80kb",
    "rate=20mbit delay=300ms queue=1500kb loss=bern:0.5% | back rate=3mbit delay=300ms queue=300kb",
];

experiment! {
    "own-paths": "Your own paths, with files, messages and datagrams, and each policy" (Seeds, Links, Apps, Policies),
    one in 4 takes 20 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let paths = paths(options)?;
    let policies = options.policies_or(&POLICIES);
    let mut cases = Vec::new();
    for path in &paths {
        for app in apps(path, options)? {
            cases.push(ZooCase::of(cases.len() as u64, path.clone(), app, Algorithm::BBR));
        }
    }
    let policies: Vec<String> = policies.into_iter().map(str::to_owned).collect();
    let arms = measure(options, &cases, &policies, 0..options.seeds(SEEDS))?;
    Ok(report::of(&paths, &lineups(&arms, &policies)))
}

fn paths(options: &Options) -> Result<Vec<OwnPath>, Error> {
    if options.links.is_empty() {
        return Ok(PATHS.map(OwnPath::read).into_iter().collect::<Result<_, _>>()?);
    }
    Ok(options.links.clone())
}

/// The applications over a path: those that the options name, or usual ones that leave two thirds of it idle.
fn apps(path: &OwnPath, options: &Options) -> Result<Vec<ZooApp>, Error> {
    if options.apps.is_empty() {
        return Ok(ZooApp::usual(path));
    }
    Ok(options.apps.iter().map(|app| app.parse()).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::super::auto_zoo::Extent;
    use super::*;

    fn options(apps: &[&str], links: &[&str]) -> Options {
        Options {
            apps: apps.iter().map(|&app| app.to_owned()).collect(),
            links: links.iter().map(|link| OwnPath::read(link).unwrap()).collect(),
            policies: vec!["tail:burst=2".to_owned()],
            seeds: Some(2),
            ..Options::default()
        }
    }

    #[test]
    fn paths_applications_and_policies_are_what_the_user_says() {
        let apps = ["files=20kb count=2 pause=10ms", "messages=500b every=20ms count=100"];
        let links = ["rate=5mbit delay=10ms loss=bern:2%", "perfect"];
        let report = run(&options(&apps, &links)).unwrap();
        let table = &report.tables[1];
        let texts = |column: usize| {
            let cells = table.rows.iter().map(|row| row[column].to_string());
            cells.collect::<Vec<_>>()
        };
        assert_eq!(texts(0), ["1", "1", "1", "1", "2", "2", "2", "2"]);
        assert_eq!(texts(2)[..2], ["none", "tail:burst=2"]);
        assert!(texts(1)[0].starts_with("files=20000b count=2"), "{}", texts(1)[0]);
        // Nothing is lost on the second path.
        assert_eq!(texts(3)[6], "0.0 % (0.0..)");
    }

    #[test]
    fn usual_applications_fit_the_path() {
        for link in PATHS.into_iter().chain(["perfect", "rate=200kbit", "trace=10,20,30"]) {
            let path = OwnPath::read(link).unwrap();
            let apps = ZooApp::usual(&path);
            assert_eq!(apps.len(), 4, "{link}");
            let rate = Extent::of(&path.up, &path.down).rate;
            for app in apps {
                let ZooApp::Feed(feed) = app else { continue };
                let load = 8.0 * feed.size as f64 / feed.every.as_secs_f64();
                assert!(load <= rate / 3.0, "{link}: {load} of {rate}");
            }
        }
    }

    #[test]
    fn what_is_no_application_is_told() {
        let error = run(&options(&["movies=3"], &["perfect"])).unwrap_err().to_string();
        assert!(error.contains("movies") && error.contains("files="), "{error}");
    }
}
