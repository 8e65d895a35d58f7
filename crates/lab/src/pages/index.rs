//! ByteIndex (Bocchi 2016), in the form of Marx 2020, section 5.2.

use std::time::Duration;

use super::corpus::Page;
use super::requests::Load;

/// From one look to the next.
const SAMPLE: Duration = Duration::from_millis(100);

/// What a resource counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighting {
    /// Its bytes.
    Bytes,
    /// As much as any other.
    Objects,
}

/// The area above the curve of what is complete, in milliseconds: every 100 ms, the share of the
/// resources of a set that are not complete. Smaller is better. Zero for an empty set.
#[must_use]
pub fn byte_index(
    page: &Page,
    load: &Load,
    weighting: Weighting,
    set: impl Fn(usize) -> bool,
) -> f64 {
    let weight = |index: usize| match weighting {
        Weighting::Bytes => page.resources[index].bytes as f64,
        Weighting::Objects => 1.0,
    };
    let set: Vec<(Duration, f64)> = (0..page.resources.len())
        .filter(|&index| set(index))
        .map(|index| (load.completed[index], weight(index)))
        .collect();
    let total: f64 = set.iter().map(|(_, weight)| weight).sum();
    // A resource is missing in every look before it is complete.
    let looks = |completed: &Duration| completed.as_nanos().div_ceil(SAMPLE.as_nanos()) as f64;
    let missing: f64 = set.iter().map(|(completed, weight)| looks(completed) * weight).sum();
    if total > 0.0 { SAMPLE.as_secs_f64() * 1000.0 * missing / total } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::corpus::{PageResource, Trigger};
    use sutura_research::marx::Resource;

    #[test]
    fn the_index_is_the_area_above_the_curve() {
        let resource = |bytes| PageResource {
            bytes,
            resource: Resource::default(),
            trigger: Trigger::Start(Duration::ZERO),
        };
        let page = Page { id: String::new(), resources: vec![resource(1), resource(3)] };
        let completed = [100, 350].map(Duration::from_millis).to_vec();
        let load = Load { completed, requested: vec![Duration::ZERO; 2] };
        // Looks at 0, 100, 200, 300 and 400 ms: 1, 3/4, 3/4, 3/4 and 0 are missing.
        assert_eq!(byte_index(&page, &load, Weighting::Bytes, |_| true), 325.0);
        assert_eq!(byte_index(&page, &load, Weighting::Objects, |_| true), 250.0);
        assert_eq!(byte_index(&page, &load, Weighting::Bytes, |index| index == 0), 100.0);
        assert_eq!(byte_index(&page, &load, Weighting::Bytes, |_| false), 0.0);
    }
}
