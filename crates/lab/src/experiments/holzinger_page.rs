//! A page by strict priorities and by weighted classes (Holzinger et al. 2025, V-C and figure 6),
//! beside the loading order that the priorities ask for.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_analysis::statistics::millis;
use sutura_h3::{Priority, PriorityParameters};
use sutura_link::LinkConfig;
use sutura_proto::Scheme;
use sutura_sim::Scenario;

use super::paper_path::transport;
use crate::comparison::seed;
use crate::report::{Axis, Cell, Chart, Report, Series, Table, chart_of, report_of};
use crate::web::{self, Arrival, Client, Phase, Reply, Request, Server, ideal};
use crate::{Error, Options, parallel};

/// The path of figure 6, in both directions, with a queue that loses nothing.
const PATH: &str = "rate=5mbit delay=5ms queue=1000p";
const RATE: f64 = 5e6 / 8.0;
const RTT: Duration = Duration::from_millis(10);
/// The bins of the goodput.
const BIN: Duration = Duration::from_millis(50);
/// Shorter phases, in seconds, say little about shares: they have less than a hundred packets.
const MIN_PHASE: f64 = 0.2;
/// The largest relative deviation of a measured value from the computed one.
const TOLERANCE: f64 = 0.05;

/// The page: names and sizes of its resources, in the order of the requests.
const PAGE: [(&str, u64); 9] = [
    ("HTML", 148_000),
    ("CSS", 260_000),
    ("JS", 620_000),
    ("font", 116_000),
    ("LCP image", 177_000),
    ("image A", 177_000),
    ("image B", 177_000),
    ("image C", 177_000),
    ("image D", 177_000),
];
const FONT: usize = 3;
const LCP: usize = 4;

/// A way to say how the page should load: the `priority` of each resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signals {
    /// Its name in tables.
    name: &'static str,
    /// The purpose.
    about: &'static str,
    /// Field values, in the order of [`PAGE`].
    priorities: [&'static str; PAGE.len()],
}

/// Figure 1a: the signals of Safari, all resources incremental. Images C and D are below the fold.
const EPS: Signals = Signals {
    name: "EPS",
    about: "urgencies alone, as Safari sets them: HTML, CSS, JS, then font and images",
    priorities: [
        "u=0, i", "u=1, i", "u=2, i", "u=3, i", "u=3, i", "u=3, i", "u=3, i", "u=4, i", "u=4, i",
    ],
};

/// Figure 1b: the HTML beside a class of web assets at 1:4, CSS, font and JS in sequence within it,
/// then images, images in the viewport with a class of their own.
const CLASSES: Signals = Signals {
    name: "classes",
    about: "HTML to web assets 1:4; CSS, font and JS in sequence; then images, those in the \
            viewport 2:1 to the others, and the LCP image 3:1:1 to its neighbours",
    priorities: [
        "u=0, i",
        r#"u=0, exp_p=("web";u=0;i;exp_w=4.0)"#,
        r#"u=2, exp_p=("web";u=0;i;exp_w=4.0)"#,
        r#"u=1, exp_p=("web";u=0;i;exp_w=4.0)"#,
        r#"u=3, i, exp_w=3.0, exp_p=("ivp";u=3;i;exp_w=0.4 "img";u=1)"#,
        r#"u=3, i, exp_p=("ivp";u=3;i;exp_w=0.4 "img";u=1)"#,
        r#"u=3, i, exp_p=("ivp";u=3;i;exp_w=0.4 "img";u=1)"#,
        r#"u=3, i, exp_w=0.1, exp_p=("img";u=1)"#,
        r#"u=3, i, exp_w=0.1, exp_p=("img";u=1)"#,
    ],
};

/// The LCP image as early as can be where scripts do not block rendering: after HTML and CSS,
/// beside the font.
const LCP_FIRST: Signals = Signals {
    name: "LCP first",
    about: "HTML and CSS, then a class of font and LCP image at 1:2, then JS; scripts are deferred",
    priorities: [
        "u=0",
        "u=0",
        "u=2",
        r#"u=0, i, exp_p=("paint";u=1)"#,
        r#"u=0, i, exp_w=2.0, exp_p=("paint";u=1)"#,
        r#"u=3, i, exp_p=("img";u=3)"#,
        r#"u=3, i, exp_p=("img";u=3)"#,
        r#"u=5, i, exp_p=("img";u=3)"#,
        r#"u=5, i, exp_p=("img";u=3)"#,
    ],
};

/// The LCP image as early as can be where scripts block rendering, too.
const LCP_NEXT: Signals = Signals {
    name: "LCP after scripts",
    about: "HTML, CSS and JS as under EPS, then the LCP image, then font and images",
    priorities: [
        "u=0",
        "u=0",
        "u=0",
        r#"u=0, i, exp_p=("paint";u=1)"#,
        r#"u=0, i, exp_w=4.0, exp_p=("paint";u=1)"#,
        r#"u=3, i, exp_p=("img";u=3)"#,
        r#"u=3, i, exp_p=("img";u=3)"#,
        r#"u=5, i, exp_p=("img";u=3)"#,
        r#"u=5, i, exp_p=("img";u=3)"#,
    ],
};

impl Signals {
    fn page(&self) -> Result<Vec<Request>, Error> {
        let wrong = |error| Error::Priority { name: self.name, error };
        let resources = PAGE.iter().zip(self.priorities).enumerate();
        let request = |(number, (&(_, bytes), text)): (usize, (&(&str, u64), &str))| {
            let priority: Priority = text.parse::<PriorityParameters>().map_err(wrong)?.resolve();
            Ok(Request { priority: Some(priority), ..Request::described(number, bytes) })
        };
        resources.map(request).collect()
    }
}

/// A page that was loaded once.
#[derive(Clone, Debug)]
struct PriorityLoad {
    /// The signalled priorities.
    signals: Signals,
    /// How the server scheduled it.
    scheme: Scheme,
    /// The course of the load.
    course: PageCourse,
}

/// The course of a load.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PageCourse {
    /// When each resource was complete, from the requests.
    complete: [Duration; PAGE.len()],
    /// The bytes in the order of their arrival; times are from the requests.
    arrivals: Vec<Arrival>,
    /// The ideal load. Times are from the first byte.
    ideal: Vec<Phase>,
}

/// A part of the load in which the same resources should be sent.
#[derive(Clone, Debug)]
struct SharedPhase {
    /// From when to when it lasted, from the requests.
    interval: (Duration, Duration),
    /// Each resource with the share that it should have and the share that it had.
    shares: Vec<(usize, f64, f64)>,
}

impl PageCourse {
    /// When each resource should be complete, from the requests.
    fn expected(&self) -> [Duration; PAGE.len()] {
        let mut expected = [Duration::ZERO; PAGE.len()];
        for phase in &self.ideal {
            for &resource in &phase.completed {
                expected[resource] = RTT + Duration::from_secs_f64(phase.end);
            }
        }
        expected
    }

    /// The measured shares in each phase of the ideal load that is long enough. A measured phase ends
    /// when the same resources are complete. It begins at the end of the previous one, but not before
    /// bytes of all resources that share have arrived: the server sends the first bytes before it
    /// knows of all requests.
    fn sharing(&self) -> Vec<SharedPhase> {
        let mut start = Duration::ZERO;
        let mut sharing = Vec::new();
        let mut ideal_start = 0.0;
        for phase in &self.ideal {
            let ends = phase.completed.iter().map(|resource| self.complete[*resource]);
            // If several resources are complete together, the first of them ends the sharing.
            let end = ends.clone().min().unwrap_or(start);
            if phase.end - ideal_start >= MIN_PHASE && end > start {
                sharing.push(self.share(phase, (start, end)));
            }
            start = ends.max().unwrap_or(start).max(start);
            ideal_start = phase.end;
        }
        sharing
    }

    fn share(&self, phase: &Phase, (start, end): (Duration, Duration)) -> SharedPhase {
        let first = |leaf| self.arrivals.iter().find(|a| a.request == leaf).map(|first| first.at);
        let begun = phase.shares.iter().filter_map(|(leaf, _)| first(*leaf)).max();
        let interval = (begun.unwrap_or(start).max(start), end);
        let mut bytes = [0; PAGE.len()];
        for arrival in &self.arrivals {
            if arrival.at > interval.0 && arrival.at <= interval.1 {
                bytes[arrival.request] += arrival.bytes;
            }
        }
        let all = bytes.iter().sum::<u64>().max(1) as f64;
        let shares = phase.shares.iter();
        let shares = shares.map(|&(leaf, share)| (leaf, share, bytes[leaf] as f64 / all));
        SharedPhase { interval, shares: shares.collect() }
    }

    /// Goodput of a resource in Mbit/s, by bins.
    fn goodput(&self, resource: usize) -> Vec<(f64, f64)> {
        let end = self.complete.iter().max().copied().unwrap_or_default();
        let bins = end.as_millis().div_ceil(BIN.as_millis()) as usize + 1;
        let mut bytes = vec![0; bins];
        for arrival in self.arrivals.iter().filter(|arrival| arrival.request == resource) {
            let bin = (arrival.at.as_nanos() / BIN.as_nanos()) as usize;
            if let Some(bytes) = bytes.get_mut(bin) {
                *bytes += arrival.bytes;
            }
        }
        let rates = bytes.iter().map(|bytes| *bytes as f64 * 8.0 / BIN.as_secs_f64() / 1e6);
        rates.enumerate().map(|(bin, rate)| (bin as f64 * millis(BIN), rate)).collect()
    }
}

/// Loads the page once.
fn load(signals: Signals, scheme: Scheme, seed: u64) -> Result<PageCourse, Error> {
    let path: LinkConfig = PATH.parse()?;
    let transport = transport().with_scheduler(Arc::new(scheme));
    let page = signals.page()?;
    let scenario = Scenario::new(seed).link(&path, &path).transport(&transport);
    let client = Client::new(page.clone());
    let loaded = web::load(&scenario, client, || Server::app(Reply::described), 0)?;
    let (ends, arrivals) = (loaded.after, loaded.arrivals);
    // The headers' part of the path's rate is not shared among resources.
    let bytes = PAGE.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let headers = ends.down.sent * u64::from(path.overhead);
    let rate = RATE * bytes as f64 / (ends.down.sent_bytes + headers) as f64;
    let head_start = head_start(&arrivals);
    Ok(PageCourse {
        complete: std::array::from_fn(|resource| loaded.load.completed[resource]),
        arrivals,
        ideal: ideal(&page, head_start, rate),
    })
}

/// The bytes of the first resource that arrived before bytes of any other. The server sends them when the
/// first request arrives, before it knows of the later requests.
fn head_start(arrivals: &[Arrival]) -> u64 {
    arrivals.iter().take_while(|arrival| arrival.request == 0).map(|arrival| arrival.bytes).sum()
}

experiment! {
    "holzinger-page": "A page by strict priorities and by weighted classes, beside the ideal",
    one in 1 takes 1 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let jobs = [
        (EPS, Scheme::EPS),
        (CLASSES, Scheme::HMM),
        (CLASSES, Scheme::HLS),
        (LCP_FIRST, Scheme::HMM),
        (LCP_NEXT, Scheme::HMM),
    ];
    let courses = parallel::map(options, &jobs, |&(signals, scheme)| {
        load(signals, scheme, seed(options.seed, 1))
    })?;
    let loads = jobs.into_iter().zip(courses);
    let loads = loads.map(|((signals, scheme), course)| PriorityLoad { signals, scheme, course });
    Ok(report(&loads.collect::<Vec<_>>()))
}

fn report(loads: &[PriorityLoad]) -> Report {
    let signals = [EPS, CLASSES, LCP_FIRST, LCP_NEXT];
    let described = signals.map(|s| format!("`{}`: {}.", s.name, s.about)).join(" ");
    report_of(
        "A page by strict priorities and by weighted classes",
        &[
            "Holzinger et al. 2025, V-C and figure 6: HTML 148 kB, CSS 260 kB, JS 620 kB, a font of \
             116 kB and five images of 177 kB, one of them the largest contentful paint, all asked \
             for at once over HTTP/3; 5 Mbit/s, round-trip time 10 ms, BBR, no loss.",
            &format!(
                "{described} The paper gives the ratio 1:4, the sequence of CSS and JS, the classes of \
                 images and the weight 0.4 of the viewport; the other weights are ours. Two more trees \
                 ask how early the LCP image can be without delaying what blocks rendering."
            ),
            "`ideal` is computed from the tree and the page's share of the path as if bytes could be \
             divided at will; what is sent of the HTML before the server knows of another request counts \
             as given. `measured` is when the client had read the last byte. Shares are those of \
             the bytes read while the same resources should be sent.",
        ],
        [verdicts(loads), completion(loads), shares(loads)],
        loads.iter().map(chart).collect::<Vec<_>>(),
    )
}

/// How far a measured value is from a computed one, relative to that.
fn deviation(measured: f64, computed: f64) -> f64 {
    if computed > 0.0 { measured / computed - 1.0 } else { 0.0 }
}

fn completion(loads: &[PriorityLoad]) -> Table {
    let columns = ["priorities", "scheduler", "resource", "ideal", "measured", "deviation"];
    let mut table = Table::new("Time until each resource is complete", columns);
    for load in loads {
        let expected = load.course.expected();
        for (i, (name, _)) in PAGE.iter().enumerate() {
            let (measured, expected) = (load.course.complete[i], expected[i]);
            table.row([
                load.signals.name.into(),
                load.scheme.name().into(),
                (*name).into(),
                expected.into(),
                measured.into(),
                Cell::Share(deviation(measured.as_secs_f64(), expected.as_secs_f64())),
            ]);
        }
    }
    table
}

fn shares(loads: &[PriorityLoad]) -> Table {
    let columns =
        ["priorities", "scheduler", "from", "to", "resource", "ideal", "measured", "deviation"];
    let mut table = Table::new("Shares of the path", columns);
    for load in loads {
        for SharedPhase { interval, shares } in load.course.sharing() {
            for (resource, ideal, measured) in shares {
                table.row([
                    load.signals.name.into(),
                    load.scheme.name().into(),
                    interval.0.into(),
                    interval.1.into(),
                    PAGE[resource].0.into(),
                    Cell::Share(ideal),
                    Cell::Share(measured),
                    Cell::Share(deviation(measured, ideal)),
                ]);
            }
        }
    }
    table
}

fn worst(deviations: impl Iterator<Item = f64>) -> f64 {
    deviations.map(f64::abs).fold(0.0, f64::max)
}

fn verdict(met: bool) -> Cell {
    if met { "met" } else { "missed" }.into()
}

fn verdicts(loads: &[PriorityLoad]) -> Table {
    let columns = ["priorities", "scheduler", "target", "wanted", "measured", "verdict"];
    let mut table = Table::new("Targets", columns);
    let eps = loads.iter().find(|load| load.signals == EPS);
    for load in loads {
        let mut row = |what: &str, wanted: Cell, seen: Cell, met: bool| {
            let (signals, scheme) = (load.signals.name.into(), load.scheme.name().into());
            table.row([signals, scheme, what.into(), wanted, seen, verdict(met)]);
        };
        let expected = load.course.expected();
        let seconds = |time: &Duration| time.as_secs_f64();
        let times = load.course.complete.iter().zip(&expected);
        let times = worst(times.map(|(m, e)| deviation(seconds(m), seconds(e))));
        let sharing = load.course.sharing();
        let shares = sharing.iter().flat_map(|sharing| &sharing.shares);
        let shares = worst(shares.map(|(_, ideal, measured)| deviation(*measured, *ideal)));
        let within = |seen: f64| (Cell::Share(TOLERANCE), Cell::Share(seen), seen <= TOLERANCE);
        let (wanted, seen, met) = within(times);
        row("largest deviation of a completion time", wanted, seen, met);
        let (wanted, seen, met) = within(shares);
        row("largest deviation of a share", wanted, seen, met);
        let Some(eps) = eps.filter(|_| load.signals != EPS) else { continue };
        for resource in [LCP, FONT] {
            let (before, seen) = (eps.course.complete[resource], load.course.complete[resource]);
            let what = format!("{} earlier than under EPS", PAGE[resource].0);
            row(&what, before.into(), seen.into(), seen < before);
        }
    }
    table
}

fn chart(load: &PriorityLoad) -> Chart {
    let resources = PAGE.iter().enumerate();
    let series =
        resources.map(|(index, (name, _))| Series::line(*name, load.course.goodput(index)));
    chart_of(
        format!("{} by {}", load.signals.name, load.scheme),
        format!("Goodput of each resource: {} by {}", load.signals.name, load.scheme),
        [Axis::linear("time since the requests in ms"), Axis::linear("goodput in Mbit/s")],
        series,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_loads_are_those_of_the_trees() {
        let order = |signals: Signals| -> Vec<&str> {
            let phases = ideal(&signals.page().unwrap(), 0, 1000.0);
            phases.iter().flat_map(|p| &p.completed).map(|resource| PAGE[*resource].0).collect()
        };
        assert_eq!(order(EPS)[..4], ["HTML", "CSS", "JS", "font"]);
        assert_eq!(order(CLASSES)[..5], ["CSS", "font", "HTML", "JS", "LCP image"]);
        assert_eq!(order(LCP_FIRST)[..5], ["HTML", "CSS", "LCP image", "font", "JS"]);
        assert_eq!(order(LCP_NEXT)[..5], ["HTML", "CSS", "JS", "LCP image", "font"]);
        let phases = ideal(&CLASSES.page().unwrap(), 0, 1000.0);
        assert_eq!(phases[0].shares, [(0, 0.2), (1, 0.8)]);
        assert_eq!(phases.iter().map(|p| p.end).fold(0.0, f64::max).round(), 2029.0);
    }

    #[test]
    fn weights_and_classes_come_out_as_they_were_signalled() {
        for scheme in [Scheme::HMM, Scheme::HLS] {
            let load = load(CLASSES, scheme, 1).unwrap();
            let expected = load.expected();
            for ((name, _), (measured, ideal)) in
                PAGE.iter().zip(load.complete.iter().zip(&expected))
            {
                let off = deviation(measured.as_secs_f64(), ideal.as_secs_f64());
                assert!(off.abs() < TOLERANCE, "{scheme} {name}: {measured:?} {ideal:?}");
            }
            let sharing = load.sharing();
            assert!(sharing.len() >= 4, "{sharing:?}");
            for (resource, ideal, measured) in sharing.iter().flat_map(|s| &s.shares) {
                let off = deviation(*measured, *ideal);
                assert!(off.abs() < TOLERANCE, "{scheme} {resource}: {measured} {ideal}");
            }
        }
    }
}
