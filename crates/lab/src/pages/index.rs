//! ByteIndex (Bocchi 2016), in the form of Marx 2020, section 5.2.

use sutura_analysis::sampled_index;
use sutura_analysis::statistics::millis;

use super::page::Page;
use super::requests::Load;

/// The weight of a resource in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighting {
    /// Its bytes.
    Bytes,
    /// All resources count the same.
    Objects,
}

/// The area above the curve of completion, in milliseconds: every 100 ms, the share of the resources of a set
/// that are not complete. Smaller is better. Zero for an empty set.
#[must_use]
pub fn byte_index(
    page: &Page,
    load: &Load,
    weighting: Weighting,
    set: impl Fn(usize) -> bool,
) -> f64 {
    let weight = |index: usize| match weighting {
        Weighting::Bytes => page.resources[index].bytes,
        Weighting::Objects => 1,
    };
    let set = (0..page.resources.len()).filter(|&index| set(index));
    millis(sampled_index(set.map(|index| (load.completed[index], weight(index)))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pages::page::Trigger;
    use sutura_research::marx::Kind;

    #[test]
    fn the_index_is_the_area_above_the_curve() {
        let resource = |bytes| (Kind::Other, bytes, Trigger::Start(Duration::ZERO));
        let page = Page::of(&[resource(1), resource(3)]);
        let completed = [100, 350].map(Duration::from_millis).to_vec();
        let load = Load { completed, requested: vec![Duration::ZERO; 2] };
        // Looks at 0, 100, 200, 300 and 400 ms: 1, 3/4, 3/4, 3/4 and 0 are missing.
        assert_eq!(byte_index(&page, &load, Weighting::Bytes, |_| true), 325.0);
        assert_eq!(byte_index(&page, &load, Weighting::Objects, |_| true), 250.0);
        assert_eq!(byte_index(&page, &load, Weighting::Bytes, |index| index == 0), 100.0);
        assert_eq!(byte_index(&page, &load, Weighting::Bytes, |_| false), 0.0);
    }
}
