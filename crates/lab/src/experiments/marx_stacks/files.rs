//! One file and ten, of 1 kB to 10 MB, over both networks of the paper (section 2.2).

use sutura_research::stacks::Preset;

use super::{FileLoss, Files, Network, Sample, download, stack};
use crate::comparison::{Values, mean_of, seed};
use crate::report::{Cell, Table};
use crate::{Error, Options, parallel};

/// A stack for each way of taking turns.
const STACKS: [&str; 6] = ["quicly", "msquic", "google", "lsquic", "picoquic", "picoquic-alt"];
const COUNTS: [usize; 2] = [1, 10];
const SIZES: [u64; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// Files from this size on are left out of a quick look, and have a third of the downloads otherwise.
const LONG: u64 = 10_000_000;
/// Downloads of each configuration; the paper has at least this number.
const TRACES: u64 = 10;

/// A download, and its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileLoad {
    network: Network,
    files: Files,
}

/// All cases; a quick look leaves out the longest files.
fn cases(quick: bool) -> Vec<FileLoad> {
    let sizes = SIZES.into_iter().filter(|bytes| !quick || *bytes < LONG);
    let files = sizes.flat_map(|bytes| COUNTS.map(|count| Files { count, bytes }));
    let files: Vec<Files> = files.collect();
    let networks = Network::ALL.into_iter();
    networks
        .flat_map(|network| files.iter().map(move |&files| FileLoad { network, files }))
        .collect()
}

/// The downloads of a case with each of the [`STACKS`].
fn measure(case: &FileLoad, count: u64, base: u64) -> Result<Vec<Vec<Sample>>, Error> {
    let (up, down) = FileLoss::Random.links_of(case.network)?;
    let of_stack = |name: &&str| {
        let server = Preset::by_name(name).map_or_else(super::server, stack);
        let sample = |n| {
            let trace = download(&server, case.files, (&up, &down), seed(base, 1 + n))?;
            Ok(Sample::of(&trace))
        };
        (0..count).map(sample).collect()
    };
    STACKS.iter().map(of_stack).collect()
}

/// The median ratio of the downloads in which a packet was lost.
fn ratio(samples: &[Sample]) -> Cell {
    let ratios = Values::of(samples.iter().filter_map(|sample| sample.ratio));
    if ratios.is_empty() { Cell::none() } else { ratios.cell(0.5) }
}

/// The table.
pub(super) fn table(options: &Options) -> Result<Table, Error> {
    let cases = cases(options.reduce > 1);
    let samples = parallel::map(options, &cases, |case| {
        let count = options.seeds(TRACES);
        let count = if case.files.bytes < LONG { count } else { count.div_ceil(3) };
        measure(case, count, options.seed)
    })?;
    let completion = |samples: &[Sample]| Cell::Millis(mean_of(samples, |s| s.completion));
    let caption = "Other files, and both networks: the median ratio of the downloads with losses, which are one \
                   packet in five hundred, each on its own, and the mean time of a file";
    let columns = ["network", "files", "bytes"].map(str::to_owned).into_iter();
    let columns = columns.chain(STACKS.map(str::to_owned));
    let columns = columns.chain(["quicly", "picoquic-alt"].map(|name| format!("{name}, complete")));
    let mut table = Table::new(caption, columns);
    for (case, samples) in cases.iter().zip(&samples) {
        let FileLoad { network, files } = case;
        let head = [network.name().into(), files.count.into(), files.bytes.into()];
        let ratios = samples.iter().map(|samples| ratio(samples));
        let times = [samples.first(), samples.last()].into_iter().flatten().map(|s| completion(s));
        table.row(head.into_iter().chain(ratios).chain(times));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_ten_files_of_1_kb_to_10_mb_over_both_networks() {
        let all = cases(false);
        assert_eq!(all.len(), 20);
        assert!(STACKS.iter().all(|name| Preset::by_name(name).is_some()));
        let long = |case: &FileLoad| case.files == Files { count: 10, bytes: 10_000_000 };
        assert_eq!(all.iter().filter(|case| long(case)).count(), 2);
        assert!(!cases(true).iter().any(long));
    }

    #[test]
    fn a_faster_network_shortens_a_large_file_and_not_one_of_a_packet() {
        let case = |network, bytes| FileLoad { network, files: Files { count: 1, bytes } };
        let time = |network, bytes| {
            let samples = measure(&case(network, bytes), 1, 1).unwrap();
            assert_eq!(samples.len(), STACKS.len());
            samples[0][0].completion
        };
        let [slow, fast] = Network::ALL.map(|n| time(n, 1_000));
        assert!(fast > 40.0 && slow < fast + 5.0, "{slow} {fast}");
        let [slow, fast] = Network::ALL.map(|n| time(n, 1_000_000));
        assert!(fast < slow - 10.0, "{slow} {fast}");
    }
}
