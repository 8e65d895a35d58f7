//! ByteIndex: how early the bytes of a page arrived.
//!
//! With x(t) the share of bytes that have arrived by t, it is the integral of 1 - x(t) from the
//! first request until all bytes have arrived: the area above the progress curve. Lower is better.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::arrivals::{Arrival, Direction, arrivals};
use crate::millis;
use crate::streams::stream_table;
use crate::trace::{Trace, is_request_stream};

/// The sampling interval of [`Index::sampled`] and [`Index::objects`].
pub const SAMPLING_INTERVAL: Duration = Duration::from_millis(100);

/// The area above a progress curve, for three definitions of progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Index {
    /// Every byte counts on arrival: ByteIndex as Bocchi et al. (2016) define it.
    #[serde(rename = "progressive_ms", serialize_with = "millis::serialize")]
    pub progressive: Duration,
    /// The bytes of a stream count from the first sample at which it is complete: Marx et al.
    /// (2020), section 5.2. Samples are [`SAMPLING_INTERVAL`] apart, the first at the start.
    #[serde(rename = "sampled_ms", serialize_with = "millis::serialize")]
    pub sampled: Duration,
    /// The same, with all streams weighted equally (ObjectIndex).
    #[serde(rename = "objects_ms", serialize_with = "millis::serialize")]
    pub objects: Duration,
}

/// The index of a single stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StreamIndex {
    /// The stream.
    pub stream: u64,
    /// Its length, as far as known.
    pub bytes: u64,
    /// When it was complete, since the page's start.
    #[serde(rename = "completed_ms", serialize_with = "millis::option::serialize")]
    pub completed: Option<Duration>,
    /// [`Index::progressive`] of this stream alone: the mean arrival time of its bytes.
    #[serde(rename = "progressive_ms", serialize_with = "millis::serialize")]
    pub progressive: Duration,
}

/// The ByteIndex of a set of streams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ByteIndex {
    /// When the page began, since the first event of the trace: the time of the first request, or
    /// the trace's start if there is none. All other times count from here.
    #[serde(rename = "start_ms", serialize_with = "millis::serialize")]
    pub start: Duration,
    /// Bytes of all streams of the set.
    pub bytes: u64,
    /// The index of the whole set.
    pub index: Index,
    /// The index of each stream, by stream identifier.
    pub streams: Vec<StreamIndex>,
    /// Streams that never completed. They count as complete at the end of the trace.
    pub unfinished: u64,
    /// Requested streams that are not in the trace.
    pub unknown: Vec<u64>,
}

/// The ByteIndex of one direction, over the streams in `visible`. If that is `None`, over all
/// request streams (bidirectional, opened by the client), or over all streams if there are no
/// request streams.
pub fn byte_index(
    trace: &Trace,
    direction: Direction,
    visible: Option<&BTreeSet<u64>>,
) -> ByteIndex {
    let mut table = stream_table(trace, direction);
    table.retain(|row| row.frames > 0);
    let start = table.iter().filter_map(|row| row.requested).min().unwrap_or_default();
    let has_requests = table.iter().any(|row| is_request_stream(row.stream));
    table.retain(|row| match visible {
        Some(visible) => visible.contains(&row.stream),
        None => !has_requests || is_request_stream(row.stream),
    });
    let ids: BTreeSet<u64> = table.iter().map(|row| row.stream).collect();
    let unknown = visible.map(|set| set.difference(&ids).copied().collect()).unwrap_or_default();
    let times = byte_times(&arrivals(trace, direction), start);
    let end = trace.duration.saturating_sub(start);
    let mut result = ByteIndex { start, unknown, ..ByteIndex::default() };
    let mut progressive = Mean::default();
    let mut complete: Vec<(Duration, u64)> = Vec::with_capacity(table.len());
    for row in &table {
        let bytes = row.final_size.unwrap_or(0).max(row.bytes);
        let mut own = Mean::default();
        own.add(times.get(&row.stream).copied().unwrap_or_default(), row.bytes);
        own.add(product(end, bytes - row.bytes), bytes - row.bytes);
        progressive.add(own.sum, own.weight);
        let completed = row.completed.map(|at| at.saturating_sub(start));
        complete.push((completed.unwrap_or(end), bytes));
        result.bytes = result.bytes.saturating_add(bytes);
        result.unfinished += u64::from(completed.is_none());
        let progressive = own.value();
        result.streams.push(StreamIndex { stream: row.stream, bytes, completed, progressive });
    }
    result.index = Index {
        progressive: progressive.value(),
        sampled: sampled_index(complete.iter().copied()),
        objects: sampled_index(complete.iter().map(|(at, _)| (*at, 1))),
    };
    result
}

/// The index of items that count from the first sample at which they are complete
/// ([`Index::sampled`], [`Index::objects`]). Each item is its completion time since the start and
/// its weight. Zero if the total weight is zero.
pub fn sampled_index(complete: impl IntoIterator<Item = (Duration, u64)>) -> Duration {
    let mut mean = Mean::default();
    for (at, weight) in complete {
        mean.add(product(next_sample(at), weight), weight);
    }
    mean.value()
}

/// For each stream, the sum of the arrival times of its bytes, in nanoseconds since `start`.
fn byte_times(arrivals: &[Arrival], start: Duration) -> BTreeMap<u64, u128> {
    let mut times: BTreeMap<u64, u128> = BTreeMap::new();
    for arrival in arrivals {
        let sum = times.entry(arrival.frame.stream).or_default();
        let at = arrival.at.saturating_sub(start);
        *sum = sum.saturating_add(product(at, arrival.new_bytes));
    }
    times
}

fn product(time: Duration, bytes: u64) -> u128 {
    time.as_nanos().saturating_mul(u128::from(bytes))
}

/// The first sample at or after `time`.
fn next_sample(time: Duration) -> Duration {
    let interval = SAMPLING_INTERVAL.as_nanos();
    let nanos = time.as_nanos().div_ceil(interval).saturating_mul(interval);
    duration(nanos)
}

fn duration(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A weighted mean of times. The area above a progress curve that ends at 1 is the mean time at
/// which its parts were added.
#[derive(Debug, Default)]
struct Mean {
    sum: u128,
    weight: u128,
}

impl Mean {
    fn add(&mut self, sum: u128, weight: impl Into<u128>) {
        self.sum = self.sum.saturating_add(sum);
        self.weight = self.weight.saturating_add(weight.into());
    }

    fn value(&self) -> Duration {
        duration(self.sum.checked_div(self.weight).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Build, frame, last};

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Requests at 50 and 60. Stream 0: 100 bytes at 150, 100 at 250 with its end. Stream 4: 600
    /// bytes at 310 with its end. The page starts at 50.
    fn page() -> Trace {
        Build::default()
            .sent(50, 0, &[last(0, 0, 10)])
            .sent(60, 1, &[last(4, 0, 10)])
            .received(100, 0, &[frame(3, 0, 7)])
            .received(150, 1, &[frame(0, 0, 100)])
            .received(250, 2, &[last(0, 100, 100)])
            .received(310, 3, &[last(4, 0, 600)])
            .trace()
    }

    #[test]
    fn a_page_of_two() {
        let result = byte_index(&page(), Direction::Received, None);
        // Bytes: 100 at 100 ms, 100 at 200 ms, 600 at 260 ms, of 800:
        // (100 * 100 + 100 * 200 + 600 * 260) / 800 = 186000 / 800 = 232.5.
        let progressive = Duration::from_micros(232_500);
        // 200 bytes are complete at 200 ms: counted by the sample at 200 ms. 600 bytes at 260: at
        // 300.
        // Sums of 100 ms times 1 - x: 100 + 100 (x = 0), then 100 * 0.75 = 275.
        let sampled = ms(275);
        // 100 + 100 + 100 * 0.5 = 250.
        let objects = ms(250);
        assert_eq!(result.index, Index { progressive, sampled, objects });
        assert_eq!((result.start, result.bytes, result.unfinished), (ms(50), 800, 0));
        let streams: Vec<_> =
            result.streams.iter().map(|s| (s.stream, s.bytes, s.progressive)).collect();
        assert_eq!(streams, [(0, 200, ms(150)), (4, 600, ms(260))]);
    }

    #[test]
    fn only_the_visible_ones() {
        let visible = BTreeSet::from([0, 8]);
        let result = byte_index(&page(), Direction::Received, Some(&visible));
        assert_eq!((result.bytes, &result.unknown[..]), (200, &[8][..]));
        assert_eq!(result.index.progressive, ms(150));
        assert_eq!((result.index.sampled, result.index.objects), (ms(200), ms(200)));
        let none = byte_index(&page(), Direction::Received, Some(&BTreeSet::new()));
        assert_eq!((none.index, none.bytes), (Index::default(), 0));
    }

    #[test]
    fn what_is_missing_is_late() {
        // Of 20 bytes, 10 come at 100 ms and 10 never: until the end at 500 ms.
        let trace = Build::default()
            .sent(0, 0, &[last(0, 0, 1)])
            .received(100, 1, &[last(0, 10, 10)])
            .received(500, 2, &[frame(3, 0, 1)])
            .trace();
        let result = byte_index(&trace, Direction::Received, None);
        assert_eq!((result.bytes, result.unfinished), (20, 1));
        assert_eq!(result.index.progressive, ms(300));
        assert_eq!(result.index.sampled, ms(500));
    }

    #[test]
    fn samples_see_what_is_complete_by_then() {
        for (time, sample) in [(0, 0), (1, 100), (100, 100), (101, 200)] {
            assert_eq!(next_sample(ms(time)), ms(sample));
        }
    }

    #[test]
    fn streams_of_servers_count_if_there_are_no_others() {
        let trace = Build::default().received(20, 1, &[last(3, 0, 10)]).trace();
        let result = byte_index(&trace, Direction::Received, None);
        assert_eq!((result.start, result.bytes), (ms(0), 10));
        assert_eq!(result.index.progressive, ms(20));
    }
}
