//! Properties that the scheduler goes by, but that nothing tells it.

use sutura_research::Needs;
use sutura_research::marx::{Aspect, GoesBy};

use super::rules::Rules;

/// A sentence about properties that the scheduler `name` goes by, but can learn neither from requests nor
/// from `rules`; `None` if there are none.
pub fn untold(name: &str, needs: &Needs, rules: &Rules) -> Option<String> {
    match needs {
        Needs::Resource(goes_by) => undescribed(name, goes_by, rules),
        Needs::Dependencies => Some(alike(name, "the dependencies of streams")),
        Needs::Deadlines => Some(alike(name, "the deadlines of streams")),
        Needs::Nothing => None,
    }
}

fn alike(name: &str, what: &str) -> String {
    format!("{name} goes by {what}, which nothing says over HTTP: all responses are alike to it")
}

/// The media type tells the kind, and the order of requests tells the page's document. Rules must tell other
/// properties.
fn undescribed(name: &str, goes_by: &GoesBy, rules: &Rules) -> Option<String> {
    let unknown = goes_by.aspects.iter().filter(|a| a.name != "main" && !rules.names(a));
    let unknown: Vec<&Aspect> = unknown.copied().collect();
    let example = unknown.last()?.name;
    let listed: Vec<_> = unknown.iter().map(|a| format!("{} ({})", a.summary, a.name)).collect();
    Some(format!(
        "{name} also goes by which resources are {}: no line of --priorities says that, such as \
         /img/a.png => resource {example}",
        listed.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_says_is_named_and_nothing_else() {
        let untold = |name: &str, rules: &Rules| untold(name, &Needs::of(name), rules);
        let none = Rules::default();
        for name in ["eps", "hmm", "hls", "rr", "fifo", "wrr", "mvfst", "picoquic"] {
            assert_eq!(untold(name, &none), None, "{name}");
        }
        for (name, what) in [("h2", "dependencies"), ("deadline", "deadlines")] {
            assert!(untold(name, &none).unwrap().contains(what), "{name}");
        }
        let text = untold("bucket", &none).unwrap();
        for aspect in ["head", "deferred", "preload", "critical", "hero"] {
            assert!(text.contains(&format!("({aspect})")), "{text}");
        }
        let rules = Rules::parse("/a => resource hero\n/b => resource head critical\n").unwrap();
        let text = untold("bucket", &rules).unwrap();
        assert!(text.contains("(deferred), ") && !text.contains("(hero)"), "{text}");
        assert_eq!(untold("zeroweight", &rules), None);
    }
}
