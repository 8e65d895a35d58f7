//! The properties of a resource that matter to a scheme.

use super::plan::Plan;
use super::{Aspect, Bucket, Concurrency, Kind, Resource};

/// The properties of a [`Resource`] that matter to a scheme. Other properties change nothing.
#[derive(Clone, Debug, Default)]
pub struct GoesBy {
    /// Whether the kind counts.
    pub kind: bool,
    /// The aspects that count for resources of at least one kind.
    pub aspects: Vec<&'static Aspect>,
    /// Whether [`Resource::bucket`] counts.
    pub bucket: bool,
    /// Whether [`Resource::weight`] counts.
    pub weight: bool,
}

impl GoesBy {
    /// Asks the plan about every resource that there can be.
    pub(super) fn of(plan: &Plan) -> Self {
        let place = plan.place;
        let all: Vec<Resource> = Kind::ALL.iter().flat_map(|&kind| all_of_kind(kind)).collect();
        let differs = |change: &dyn Fn(&mut Resource)| {
            all.iter().any(|&resource| {
                let mut other = resource;
                change(&mut other);
                place(&other) != place(&resource)
            })
        };
        let bucket = Bucket::new(Bucket::MAX_PRIORITY, Concurrency::Shared);
        let aspects = Aspect::ALL.iter();
        Self {
            kind: Kind::ALL.iter().any(|&kind| differs(&|resource| resource.kind = kind)),
            aspects: aspects.filter(|a| differs(&|resource| *(a.of)(resource) ^= true)).collect(),
            bucket: differs(&|resource| resource.bucket = bucket),
            weight: differs(&|resource| resource.weight = Some(u8::MAX)),
        }
    }
}

/// The resources of a kind: with each set of aspects.
fn all_of_kind(kind: Kind) -> impl Iterator<Item = Resource> {
    (0..1_u32 << Aspect::ALL.len()).map(move |set| {
        let mut resource = Resource { kind, ..Resource::default() };
        for (bit, aspect) in Aspect::ALL.iter().enumerate() {
            *(aspect.of)(&mut resource) = set >> bit & 1 == 1;
        }
        resource
    })
}

#[cfg(test)]
mod tests {
    use super::super::goes_by;

    #[test]
    fn each_scheme_goes_by_what_its_file_says() {
        for (name, kind, aspects, own) in [
            ("rr", false, "", ""),
            ("wrr", true, "", ""),
            ("wrr-critical", true, "head deferred critical", ""),
            ("fifo", false, "", ""),
            ("dfifo", true, "late deferred", ""),
            ("firefox", true, "head deferred preload", ""),
            ("spdyrr", true, "late deferred", ""),
            ("bucket", true, "head deferred preload critical hero", "bucket"),
            ("bucket-html", true, "head deferred preload critical hero", "bucket"),
            ("zeroweight", true, "main hero", "weight"),
            ("zeroweight-atf", true, "main deferred critical hero", "weight"),
        ] {
            let goes_by = goes_by(name).unwrap();
            let names: Vec<_> = goes_by.aspects.iter().map(|aspect| aspect.name).collect();
            let of = |word: &'static str, counts| if counts { word } else { "" };
            let own_words = of("bucket", goes_by.bucket).to_owned() + of("weight", goes_by.weight);
            assert_eq!((goes_by.kind, names.join(" ").as_str()), (kind, aspects), "{name}");
            assert_eq!(own_words, own, "{name}");
        }
        assert!(goes_by("eps").is_none());
    }
}
