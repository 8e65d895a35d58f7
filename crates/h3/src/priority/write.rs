//! Encodes parameters as a field value.

use sfv::{Decimal, DictSerializer, Integer, StringRef};
use sutura_schedule::{Class, Urgency, Weight};

use super::{
    BURST, DELAY, INCREMENTAL, MAX_BURST, MAX_DELAY, MAX_URGENCY, PARENTS, PriorityParameters,
    URGENCY, WEIGHT, sayable,
};

/// The field value for `parameters`; `None` if all are absent. Values out of range are clamped.
pub(super) fn field_value(parameters: &PriorityParameters) -> Option<String> {
    let mut dictionary = DictSerializer::new();
    if let Some(urgency) = parameters.urgency {
        let _ = dictionary.bare_item(URGENCY, Integer::from(urgency.min(MAX_URGENCY)));
    }
    if let Some(incremental) = parameters.incremental {
        let _ = dictionary.bare_item(INCREMENTAL, incremental);
    }
    if let Some(weight) = parameters.weight {
        let _ = dictionary.bare_item(WEIGHT, decimal(weight));
    }
    if let Some(burst) = parameters.burst {
        let _ = dictionary.bare_item(BURST, Integer::from(burst.min(MAX_BURST)));
    }
    if let Some(delay) = parameters.delay {
        // At most 60 000.
        let millis = delay.min(MAX_DELAY).as_millis() as u32;
        let _ = dictionary.bare_item(DELAY, Integer::from(millis));
    }
    // The longest parameter comes last: a log that truncates the value still shows the others.
    if let Some(parents) = &parameters.parents {
        put_classes(&mut dictionary, parents);
    }
    dictionary.finish()
}

fn put_classes(dictionary: &mut DictSerializer<String>, parents: &[Class]) {
    let mut list = dictionary.inner_list(PARENTS);
    for class in sayable(parents) {
        let Ok(name) = StringRef::from_str(class.name.as_deref().unwrap_or_default()) else {
            continue;
        };
        let mut item = list.bare_item(name);
        if class.urgency != Urgency::default() {
            // The control urgency, which is above 0, has no value on the wire.
            item = item.parameter(URGENCY, Integer::from(class.urgency.value().unwrap_or(0)));
        }
        if class.incremental {
            item = item.parameter(INCREMENTAL, true);
        }
        if class.weight != Weight::default() {
            item = item.parameter(WEIGHT, decimal(class.weight));
        }
        let _ = item.finish();
    }
}

fn decimal(weight: Weight) -> Decimal {
    Decimal::from_integer_scaled_1000(Integer::from(weight.thousandths()))
}
