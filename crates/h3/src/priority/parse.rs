//! Parses field values into parameters.

use std::time::Duration;

use sfv::{BareItem, Dictionary, InnerList, Item, ListEntry, Parser};
use sutura_schedule::{Class, MAX_DEPTH, Urgency, Weight};

use super::{
    BURST, DELAY, INCREMENTAL, MAX_BURST, MAX_CLASS_NAME, MAX_DELAY, MAX_PRIORITY_SIZE,
    MAX_URGENCY, PARENTS, PriorityParameters, URGENCY, WEIGHT,
};

/// Called with the name of each skipped parameter and the reason.
type Skipped<'a> = &'a mut dyn FnMut(&str, &'static str);

const UNKNOWN: &str = "unknown parameter";
const BAD_URGENCY: &str = "expected an integer from 0 to 7";
const BAD_FLAG: &str = "expected nothing, ?1 or ?0";
const BAD_WEIGHT: &str = "expected a number from 0.001 to 1000";
const BAD_BURST: &str = "expected an integer from 0 to 255";
const BAD_DELAY: &str = "expected an integer from 0 to 60000, in milliseconds";
const BAD_PARENTS: &str =
    "expected a list of classes such as (\"images\";u=1;i;exp_w=0.4 \"page\")";
const BAD_CLASS: &str = "expected the name of a class: a string or token of at most 64 bytes";
const TOO_DEEP: &str = "more than 8 classes";

// The texts above state these limits.
const _: () = assert!(
    MAX_URGENCY == 7
        && MAX_BURST == 255
        && MAX_DELAY.as_millis() == 60_000
        && MAX_CLASS_NAME == 64
        && MAX_DEPTH == 8
        && Weight::MIN.thousandths() == 1
        && Weight::MAX.thousandths() == 1_000_000
);

/// Parses the usable parameters. `None` if the value is not a dictionary.
pub(super) fn parse(value: &[u8], skipped: Skipped<'_>) -> Option<PriorityParameters> {
    if value.len() > MAX_PRIORITY_SIZE {
        return None;
    }
    let dictionary: Dictionary = Parser::new(value).parse().ok()?;
    let mut parameters = PriorityParameters::default();
    for (key, entry) in &dictionary {
        let problem = match entry {
            ListEntry::Item(item) => read_item(&mut parameters, key.as_str(), &item.bare_item),
            ListEntry::InnerList(list) if key.as_str() == PARENTS.as_str() => {
                parameters.parents = Some(classes(list, skipped).into());
                None
            }
            ListEntry::InnerList(_) => Some(expected(key.as_str())),
        };
        if let Some(problem) = problem {
            skipped(key.as_str(), problem);
        }
    }
    Some(parameters)
}

/// Describes the expected value of a parameter.
fn expected(key: &str) -> &'static str {
    match key {
        key if key == URGENCY.as_str() => BAD_URGENCY,
        key if key == INCREMENTAL.as_str() => BAD_FLAG,
        key if key == WEIGHT.as_str() => BAD_WEIGHT,
        key if key == PARENTS.as_str() => BAD_PARENTS,
        key if key == BURST.as_str() => BAD_BURST,
        key if key == DELAY.as_str() => BAD_DELAY,
        _ => UNKNOWN,
    }
}

/// Reads a parameter that is not a list. Returns a description of the problem if there is one.
fn read_item(into: &mut PriorityParameters, key: &str, value: &BareItem) -> Option<&'static str> {
    fn set<T>(parameter: &mut Option<T>, value: Option<T>) -> bool {
        *parameter = value;
        parameter.is_some()
    }
    let good = match key {
        key if key == URGENCY.as_str() => set(&mut into.urgency, urgency(value)),
        key if key == INCREMENTAL.as_str() => set(&mut into.incremental, value.as_boolean()),
        key if key == WEIGHT.as_str() => set(&mut into.weight, weight(value)),
        key if key == BURST.as_str() => {
            set(&mut into.burst, integer(value).filter(|&burst| burst <= MAX_BURST))
        }
        key if key == DELAY.as_str() => {
            let delay = integer(value).map(|millis| Duration::from_millis(millis.into()));
            set(&mut into.delay, delay.filter(|&delay| delay <= MAX_DELAY))
        }
        _ => false,
    };
    (!good).then(|| expected(key))
}

fn integer(value: &BareItem) -> Option<u32> {
    u32::try_from(i64::from(value.as_integer()?)).ok()
}

fn urgency(value: &BareItem) -> Option<u8> {
    u8::try_from(integer(value)?).ok().filter(|&urgency| urgency <= MAX_URGENCY)
}

/// A weight may be written `2` as well as `2.0`.
fn weight(value: &BareItem) -> Option<Weight> {
    let thousandths = match value {
        BareItem::Decimal(decimal) => i64::from(decimal.as_integer_scaled_1000()),
        BareItem::Integer(integer) => i64::from(*integer).checked_mul(1000)?,
        _ => return None,
    };
    Weight::new(u32::try_from(thousandths).ok()?)
}

fn classes(list: &InnerList, skipped: Skipped<'_>) -> Vec<Class> {
    let mut classes = Vec::with_capacity(list.items.len().min(MAX_DEPTH));
    for item in &list.items {
        let Some(class) = class(item, skipped) else {
            skipped(PARENTS.as_str(), BAD_CLASS);
            continue;
        };
        if classes.len() == MAX_DEPTH {
            skipped(PARENTS.as_str(), TOO_DEEP);
            break;
        }
        classes.push(class);
    }
    classes
}

/// A class by its name, a string or a token; the empty string stands for no name.
fn class(item: &Item, skipped: Skipped<'_>) -> Option<Class> {
    let name = match &item.bare_item {
        BareItem::String(name) => name.as_str(),
        BareItem::Token(name) => name.as_str(),
        _ => return None,
    };
    if name.len() > MAX_CLASS_NAME {
        return None;
    }
    let name = (!name.is_empty()).then(|| name.into());
    let mut class = Class::default().with_name(name);
    for (key, value) in &item.params {
        let key = key.as_str();
        let good = if key == URGENCY.as_str() {
            let urgency = urgency(value).and_then(Urgency::new);
            class.urgency = urgency.unwrap_or_default();
            urgency.is_some()
        } else if key == INCREMENTAL.as_str() {
            class.incremental = value.as_boolean().unwrap_or_default();
            value.as_boolean().is_some()
        } else if key == WEIGHT.as_str() {
            let weight = weight(value);
            class.weight = weight.unwrap_or_default();
            weight.is_some()
        } else {
            skipped(key, "unknown parameter of a class");
            true
        };
        if !good {
            skipped(key, expected(key));
        }
    }
    Some(class)
}
