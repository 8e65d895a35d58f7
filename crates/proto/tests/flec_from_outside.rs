//! The policies of Michel 2022 (FlEC), compiled outside of the core: their files use nothing but its
//! public interface, so that they could move into another crate as they are.

// The paths by which the files name what they use.
use sutura_proto::{Message, conformance, policy, registry};

#[path = "../src/fec/redundancy/ac_rlnc.rs"]
mod ac_rlnc;
#[path = "../src/fec/redundancy/buffer.rs"]
mod buffer;
#[path = "../src/fec/redundancy/bulk.rs"]
mod bulk;
#[path = "../src/fec/redundancy/last_moment.rs"]
mod last_moment;
#[path = "../src/fec/redundancy/literal.rs"]
mod literal;
#[path = "../src/fec/redundancy/messages.rs"]
mod messages;
#[path = "../src/fec/redundancy/sr_arq.rs"]
mod sr_arq;

use policy::RedundancyFactory;
use registry::{Entry, Registry};

const ENTRIES: [Entry<dyn RedundancyFactory>; 5] =
    [ac_rlnc::ENTRY, buffer::ENTRY, bulk::ENTRY, messages::ENTRY, sr_arq::ENTRY];

#[test]
fn the_policies_need_nothing_but_the_public_interface() {
    let here = Registry::new("redundancy policy", &ENTRIES);
    let names = here.entries().iter().map(|entry| entry.name);
    let literal = ["ac-rlnc:literal", "buffer:literal", "bulk:literal", "messages:literal"];
    for name in names.chain(literal) {
        let policy = here.find(name).unwrap();
        conformance::redundancy(&*policy);
        // It is the one that is built in.
        let built_in = registry::redundancy().find(name).unwrap();
        assert_eq!(policy.parameters(), built_in.parameters(), "{name}");
    }
}

#[test]
fn they_are_made_with_parameters_too() {
    let made = [
        ac_rlnc::AcRlnc::new(2.0).map(|policy| policy.parameters()),
        buffer::Buffer::new(2.0).map(|policy| policy.parameters()),
    ];
    assert_eq!(made, [Some("c=2".to_owned()), Some("c=2".to_owned())]);
    assert!(ac_rlnc::AcRlnc::new(-1.0).is_none() && buffer::Buffer::new(f64::NAN).is_none());
}
