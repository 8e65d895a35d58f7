//! One flow on many paths, with each congestion controller of ours and quinn's beside them: how long a
//! transfer takes, compared with the same path without losses, and how it fills the queue.

pub(super) mod bed;
pub(super) mod ends;
pub(super) mod meter;
mod paths;
mod report;
pub(super) mod sender;
mod single;

use self::single::Single;
use crate::report::Report;
use crate::{Error, Options};

experiment! {
    "controllers": "One flow on many paths, by congestion controller, beside quinn's" (Seeds),
    one in 10 takes 5 s
}

/// Every sender on every path with every size.
fn run(options: &Options) -> Result<Report, Error> {
    let paths = paths::all()?;
    let sizes = single::sizes(options);
    let mut setups = Vec::new();
    // The largest transfers first, so that no thread is left alone with one at the end.
    for size in sizes.iter().rev() {
        let smallest = sizes.len() == 1;
        let long = size.bytes == single::SIZES[single::SIZES.len() - 1].bytes;
        for path in paths.iter().filter(|path| long || smallest || !path.long) {
            let senders = single::senders(path).into_iter();
            setups.extend(senders.map(|sender| Single { path, sender, size: *size }));
        }
    }
    let summaries = single::measure(&setups, options)?;
    Ok(report::report(&paths, &sizes, &summaries, options))
}

#[cfg(test)]
mod tests;
