//! The effect of the schemes on one page, packet by packet, and on its ByteIndex (Marx 2020, Figs. 12 and
//! 13).

use std::time::Duration;

use sutura_analysis::SAMPLING_INTERVAL;
use sutura_analysis::figure::{PacketRow, Picture, packets};
use sutura_analysis::statistics::millis;
use sutura_research::marx::{bucket, rr};
use sutura_schedule::Scheme;

use super::marx_pages::{BUFFERS, ENTRANTS, Entrant, Set};
use crate::Error;
use crate::pages::{Load, Page, Weighting, play, priority};
use crate::report::{Axis, Chart, Series, chart_of};

/// Loads a page with a scheme; returns the resource that each packet carried, too.
pub(super) fn load(
    page: &Page,
    scheme: Scheme,
    buffer: usize,
) -> Result<(Load, Vec<usize>), Error> {
    let mut carried = Vec::new();
    let priority = |index: usize| priority(&page.resources[index]);
    let load = play(page, &mut *scheme.build(), buffer, priority, |i| carried.push(i));
    let load = load.ok_or_else(|| Error::Incomplete { page: page.id.clone(), scheme })?;
    Ok((load, carried))
}

/// Each packet of `page` with each scheme, and with send buffers behind one (Fig. 12).
pub(super) fn schedules(page: &Page) -> Result<Picture, Error> {
    let row = |label: String, entrant: &Entrant, buffer| {
        let (_, streams) = load(&entrant.view(page), entrant.scheme, buffer)?;
        Ok::<_, Error>(PacketRow { label, streams })
    };
    let mut rows = Vec::new();
    for entrant in &ENTRANTS {
        rows.push(row(entrant.name.to_owned(), entrant, 0)?);
    }
    if let Some(entrant) = ENTRANTS.iter().find(|entrant| entrant.scheme == bucket::SCHEME) {
        for buffer in BUFFERS.into_iter().skip(2) {
            let label = format!("{}, {} kB", entrant.name, buffer / 1000);
            rows.push(row(label, entrant, buffer)?);
        }
    }
    let resources = page.resources.iter().enumerate();
    let names =
        resources.map(|(index, r)| format!("{index}: {:?}, {} B", r.resource.kind, r.bytes));
    let title = format!("{}: a box is a packet of 1400 bytes, from left to right", page.id);
    let svg = packets(&rows, &names.collect::<Vec<_>>(), &title);
    Ok(Picture { name: "packets".to_owned(), svg })
}

/// The share of the bytes of a set that is complete at each look, as the ByteIndex counts: milliseconds and
/// shares.
fn progress(page: &Page, load: &Load, set: Set) -> Vec<(f64, f64)> {
    let counted = |index: &usize| set == Set::All || page.resources[*index].resource.above_the_fold;
    let resources: Vec<(Duration, u64)> = (0..page.resources.len())
        .filter(counted)
        .map(|index| (load.completed[index], page.resources[index].bytes))
        .collect();
    let all: u64 = resources.iter().map(|(_, bytes)| bytes).sum();
    let end = resources.iter().map(|(at, _)| *at).max().unwrap_or_default();
    let looks = (0..).map(|look| SAMPLING_INTERVAL * look);
    let share = |at: Duration| {
        let there = resources.iter().filter(|(completed, _)| *completed <= at);
        there.map(|(_, bytes)| bytes).sum::<u64>() as f64 / all.max(1) as f64
    };
    looks.take_while(|at| *at < end + SAMPLING_INTERVAL).map(|at| (millis(at), share(at))).collect()
}

/// The curves above which the ByteIndex is the area, with round robin and with `bucket` (Fig. 13).
pub(super) fn curves(page: &Page) -> Result<Chart, Error> {
    let mut series = Vec::new();
    for scheme in [rr::SCHEME, bucket::SCHEME] {
        let (load, _) = load(page, scheme, 0)?;
        for (set, what) in [(Set::All, "all"), (Set::AboveTheFold, "above the fold")] {
            let index = set.index(page, &load, Weighting::Bytes);
            let label = format!("{}, {what}: {index:.0} ms", scheme.name());
            series.push(Series::line(label, progress(page, &load, set)));
        }
    }
    Ok(chart_of(
        "byte index",
        format!("{}: the area above a curve is its ByteIndex", page.id),
        [Axis::linear("time in ms"), Axis::linear("share of the bytes in complete resources")],
        series,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_schemes_send_the_same_packets_in_other_orders() {
        let page = Page::synthetic().unwrap();
        let sorted = |scheme| {
            let (_, mut streams) = load(&page, scheme, 0).unwrap();
            let order = streams.clone();
            streams.sort_unstable();
            (order, streams)
        };
        let [(turns, all), (buckets, same)] = [rr::SCHEME, bucket::SCHEME].map(sorted);
        assert_eq!(all, same);
        assert_ne!(turns, buckets);
        let packets: u64 = page.resources.iter().map(|r| r.bytes.div_ceil(1400)).sum();
        assert_eq!(all.len() as u64, packets);
        let svg = schedules(&page).unwrap().svg;
        assert!(ENTRANTS.iter().all(|entrant| svg.contains(entrant.name)));
        assert!(svg.contains("bucket, 1000 kB"));
    }

    #[test]
    fn the_area_above_a_curve_is_the_byte_index() {
        let page = Page::synthetic().unwrap();
        let (load, _) = load(&page, bucket::SCHEME, 0).unwrap();
        for set in [Set::All, Set::AboveTheFold] {
            let curve = progress(&page, &load, set);
            let area: f64 = curve.iter().map(|(_, share)| 100.0 * (1.0 - share)).sum();
            let index = set.index(&page, &load, Weighting::Bytes);
            assert!((area - index).abs() < 1.0, "{area} {index}");
        }
        assert_eq!(curves(&page).unwrap().panels[0].series.len(), 4);
    }
}
