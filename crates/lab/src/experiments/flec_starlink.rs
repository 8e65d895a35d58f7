//! Uploads of which few lose packets (Michel et al. 2022, FlEC, section VI-B3, Fig. 5), over a path that stands in for
//! the Starlink access of the paper.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sutura_analysis::interval::Estimate;
use sutura_analysis::statistics::millis;
use sutura_link::{LinkConfig, Loss};
use sutura_proto::{Algorithm, Protection, TransportConfig};
use sutura_sim::{Scenario, Transfer};

use crate::comparison::{Policy, Runs, Values, mean_within, seed, unless_broken};
use crate::report::{Axis, Cell, Chart, Report, Series, Table, chart_of, report_of};
use crate::{Error, Options};

/// Bytes of an upload.
const BYTES: u64 = 50_000;
/// Uploads with each policy, as in the paper.
const UPLOADS: u64 = 20_150;
/// The way to the server, without its losses, and the way back.
const PATHS: [&str; 2] = [
    "rate=15mbit delay=25ms jitter=10ms queue=100p",
    "rate=150mbit delay=25ms jitter=10ms queue=1000p",
];
const POLICIES: [&str; 3] = ["bulk", "bulk:literal", "auto"];
/// How the uploads without losses are called.
const IDEAL: &str = "ideal";

named! {
    /// The losses on the way to the server, of which two or three in a hundred uploads have some. Acknowledgements are
    /// not lost.
    pub enum AccessLoss {
        /// One packet in two thousand.
        Single = "single packets",
        /// For 10 ms every 2.5 s on average, each packet.
        Bursts = "10 ms at a time",
    }
}

impl AccessLoss {
    /// The way to the server and back.
    fn links(self) -> Result<[LinkConfig; 2], Error> {
        let [up, down] = PATHS;
        let loss = match self {
            Self::Single => "bern:0.0005",
            Self::Bursts => "gt:2500,10,1,0",
        };
        Ok([format!("{up} loss={loss}").parse()?, down.parse()?])
    }
}

/// The uploads of a row.
#[derive(Clone, Debug)]
struct Access {
    loss: AccessLoss,
    /// The policy, `none`, or [`IDEAL`].
    name: String,
    policy: Policy,
}

impl Access {
    fn is_ideal(&self) -> bool {
        self.name == IDEAL
    }
}

/// The outcome of an upload.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Upload {
    /// Milliseconds from its first byte until the client knows that the server has all; infinite if the connection
    /// broke.
    time: f64,
    /// Packets that were lost on the way to the server.
    lost: u64,
    /// Bytes that the client sent.
    wire: f64,
}

/// Uploads once, on a fresh connection.
fn upload(access: &Access, seed: u64) -> Result<Upload, Error> {
    let [mut up, down] = access.loss.links()?;
    if access.is_ideal() {
        up.loss = Loss::None;
    }
    let transport = TransportConfig::default().with_congestion(Arc::new(Algorithm::BBR));
    let protection = access.policy.clone().map(Protection::new);
    let scenario = Scenario::new(seed)
        .link(&up, &down)
        .transport(&transport)
        .transfer(Transfer { protection, ..Transfer::upload(BYTES) });
    let broken = Upload { time: f64::INFINITY, lost: 1, wire: 0.0 };
    Ok(unless_broken(scenario.run())?.map_or(broken, |outcome| {
        let time = outcome.transfers.first().map(|transfer| transfer.time).unwrap_or_default();
        Upload {
            time: millis(time),
            lost: outcome.ends.up.lost,
            wire: outcome.ends.up.sent_bytes as f64,
        }
    }))
}

/// The uploads of each row with the same seeds.
type Uploads = Runs<Access, Upload>;

/// The uploads of a row that lost a packet; of the ideal, those which lose one where there are losses.
struct LossyUploads<'a> {
    all: &'a Uploads,
    times: Values,
}

impl<'a> LossyUploads<'a> {
    /// `plain` are the uploads without protection.
    fn of(all: &'a Uploads, plain: &Uploads) -> Self {
        let losing = if all.setup.is_ideal() { plain } else { all };
        let pairs = all.runs.iter().zip(&losing.runs);
        let times = pairs.filter(|(_, other)| other.lost > 0).map(|(upload, _)| upload.time);
        Self { all, times: Values::of(times) }
    }

    fn median(&self) -> Estimate {
        Estimate::of(&self.times, 0.5)
    }

    /// Of the uploads that were completed.
    fn mean(&self) -> Estimate {
        mean_within(self.times.iter().copied().filter(|time| time.is_finite()))
    }
}

experiment! {
    "flec-starlink": "Uploads of 50 kB over a path like a Starlink access, of which few lose packets" (Seeds, Policies),
    one in 4 takes 20 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let policies = options.policies_or(&POLICIES);
    let mut setups = Vec::new();
    for loss in AccessLoss::ALL {
        setups.push(Access { loss, name: "none".to_owned(), policy: None });
        for name in &policies {
            let policy = options.redundancy(Some(name))?;
            setups.push(Access { loss, name: (*name).to_owned(), policy });
        }
        setups.push(Access { loss, name: IDEAL.to_owned(), policy: None });
    }
    let uploads = Runs::measure(options, &setups, options.seeds(UPLOADS), |access, n| {
        upload(access, seed(options.seed, n))
    })?;
    Ok(report(&uploads))
}

fn report(uploads: &[Uploads]) -> Report {
    let same_loss = |a: &Uploads, b: &Uploads| a.setup.loss == b.setup.loss;
    let groups: Vec<Vec<LossyUploads<'_>>> = uploads
        .chunk_by(same_loss)
        .map(|group| group.iter().map(|all| LossyUploads::of(all, &group[0])).collect())
        .collect();
    report_of(
        "Uploads of which few lose packets",
        &TEXT,
        [table(&groups)],
        groups.iter().map(|group| chart(group)).collect::<Vec<_>>(),
    )
}

fn table(groups: &[Vec<LossyUploads<'_>>]) -> Table {
    // Each row beside the first of its group, which has no protection.
    let rows: Vec<_> =
        groups.iter().flat_map(|group| group.iter().map(|row| (row, &group[0]))).collect();
    let median = |all: &Uploads| all.values(|upload| upload.time).millis_cell(0.5);
    Table::of(
        "Uploads that lost a packet",
        &rows,
        &[
            ("losses", &|(row, _)| row.all.setup.loss.name().into()),
            ("policy", &|(row, _)| row.all.setup.name.as_str().into()),
            ("uploads", &|(row, _)| row.all.runs.len().into()),
            ("that lost", &|(row, _)| row.times.len().into()),
            ("median", &|(row, _)| Cell::MillisWithin(row.median())),
            ("median by none", &|(row, none)| Cell::NumberWithin(row.median().over(none.median()))),
            ("mean", &|(row, _)| Cell::MillisWithin(row.mean())),
            ("mean by none", &|(row, none)| Cell::NumberWithin(row.mean().over(none.mean()))),
            ("all: median", &|(row, _)| median(row.all)),
            ("bytes by none", &|(row, none)| {
                Cell::NumberWithin(row.all.mean_ratio_to(none.all, |upload| upload.wire))
            }),
        ],
    )
}

/// The distribution functions of the times of a group.
fn chart(group: &[LossyUploads<'_>]) -> Chart {
    let loss = group.first().map_or("", |row| row.all.setup.loss.name());
    let series =
        group.iter().map(|row| Series::line(row.all.setup.name.clone(), row.times.curve()));
    chart_of(
        loss.replace(' ', "-"),
        format!("Uploads that lost a packet: {loss}"),
        [Axis::linear("time in ms"), Axis::linear("share of these uploads")],
        series,
    )
}

const TEXT: [&str; 2] = [
    "Michel et al. 2022 (FlEC), section VI-B3, Fig. 5: uploads of 50 kB, each on a fresh connection with BBR. The paper \
     made 20,150 over a Starlink access, of which 430 lost a packet, and shows those. The path here is not Starlink: 15 \
     Mbit/s up and 150 down, 25 to 35 ms each way, and losses on the way up so that about as many uploads lose a packet \
     as there, either single packets or all of 10 ms. The paper does not say how many are lost at once; 10 ms are \
     fifteen packets in a row, more than repair symbols are sent.",
    "Times are from the first byte until the client knows that the server has all. Each row has the uploads that lost a \
     packet with its own policy; `ideal` are those of `none` with the same seeds, without the losses. `all` and \
     bytes are of all uploads, most of which lose nothing.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_that_loses_its_end_is_sooner_with_repair_symbols() {
        let options = Options::default();
        let at = |name: &str| {
            let named = (!matches!(name, "none" | IDEAL)).then_some(name);
            let policy = options.redundancy(named).unwrap();
            Access { loss: AccessLoss::Bursts, name: name.to_owned(), policy }
        };
        let setups = ["none", "bulk", IDEAL].map(at);
        let run = |access: &Access, n| upload(access, seed(1, n));
        let uploads = Runs::measure(&options, &setups, 200, run).unwrap();
        let [none, bulk, ideal] = [0, 1, 2].map(|row| LossyUploads::of(&uploads[row], &uploads[0]));
        assert!(!none.times.is_empty());
        assert_eq!(none.times.len(), ideal.times.len());
        assert!(ideal.mean().value < none.mean().value);
        assert!(bulk.mean().value < none.mean().value);
    }
}
