//! Properties of resources that the operator knows, for schedulers that go by them: `/img/hero.* => resource
//! hero`, `*.css => bucket 63/3`, `/late.js => weight 0`.

use std::mem::{Discriminant, discriminant};
use std::str::FromStr;

use sutura_research::marx::{Aspect, Bucket, Kind, Resource};

use super::pattern::{Candidate, Pattern};

/// The sign between a pattern and a description.
const ARROW: &str = "=>";
const SYNTAX: &str = "expected resource and words such as hero, bucket 63/1 or weight 255";

/// A line of the file of rules about some resources.
#[derive(Debug)]
pub struct Description {
    pattern: Pattern,
    says: Says,
}

#[derive(Debug)]
enum Says {
    /// The kind, if the media type does not tell it, and other properties.
    Resource(Option<Kind>, Vec<&'static Aspect>),
    /// The place in the scheme `bucket`.
    Bucket(Bucket),
    /// The place in the scheme `zeroweight`.
    Weight(u8),
}

/// Lines of one sort say the same thing of a resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Sort(Discriminant<Says>);

impl Description {
    /// Whether a line of a file of rules describes resources: an arrow follows the pattern, and no priority
    /// begins with an arrow.
    pub fn is_meant(line: &str) -> bool {
        line.split_whitespace().nth(1) == Some(ARROW)
    }

    /// Whether it is about this response.
    pub fn is_about(&self, candidate: &Candidate<'_>) -> bool {
        self.pattern.matches(candidate)
    }

    /// Its sort.
    pub fn sort(&self) -> Sort {
        Sort(discriminant(&self.says))
    }

    /// Adds the description to the known properties of a resource.
    pub fn apply(&self, resource: &mut Resource) {
        match &self.says {
            Says::Resource(kind, aspects) => {
                resource.kind = kind.unwrap_or(resource.kind);
                aspects.iter().for_each(|aspect| *(aspect.of)(resource) = true);
            }
            Says::Bucket(bucket) => resource.bucket = Some(*bucket),
            Says::Weight(weight) => resource.weight = Some(*weight),
        }
    }

    /// Whether the line describes resources as `aspect`.
    pub fn names(&self, aspect: &Aspect) -> bool {
        match &self.says {
            Says::Resource(_, aspects) => aspects.iter().any(|named| named.name == aspect.name),
            Says::Bucket(_) | Says::Weight(_) => false,
        }
    }
}

impl FromStr for Description {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let mut words = line.split_whitespace();
        let pattern = Pattern::parse(words.next().unwrap_or_default())?;
        let words: Vec<&str> = words.skip(1).collect();
        let says = match *words.as_slice() {
            ["resource", ref words @ ..] if !words.is_empty() => resource(words)?,
            ["bucket", bucket] => Says::Bucket(bucket.parse()?),
            ["weight", weight] => {
                let weight = weight.parse();
                Says::Weight(weight.map_err(|_| "expected a weight from 0 to 255")?)
            }
            _ => return Err(SYNTAX.into()),
        };
        Ok(Self { pattern, says })
    }
}

/// The words for a kind and for aspects, in any order.
fn resource(words: &[&str]) -> Result<Says, String> {
    let (mut kind, mut aspects) = (None, Vec::new());
    for word in words {
        if let Some(aspect) = Aspect::by_name(word) {
            aspects.push(aspect);
        } else if let Some(named) = Kind::by_name(word) {
            kind = Some(named);
        } else {
            let kinds = Kind::ALL.iter().map(|kind| kind.name());
            let known: Vec<_> = kinds.chain(Aspect::ALL.iter().map(|a| a.name)).collect();
            let known = known.join(", ");
            return Err(format!("{word:?} is no word for a resource, which are {known}"));
        }
    }
    Ok(Says::Resource(kind, aspects))
}
