//! What flows carry, and how that is sent.
//!
//! A [`Class`] says what a flow needs. The operator's [`Rules`] name it, or how packets are marked and where they
//! go ([`hint`]), or their sizes and times show it ([`Recogniser`]). A [`Treatment`] is what datagrams and streams
//! of a class get: a deadline, an urgency, a protection. A [`Flow`] is all of that for one flow.

mod class;
mod dscp;
mod hint;
mod info;
mod recogniser;
mod rule;
mod rules;
mod tracked;
mod treatment;

pub use class::Class;
pub use dscp::{Dscp, InvalidDscp};
pub use hint::hint;
pub use info::FlowInfo;
pub use recogniser::Recogniser;
pub use rule::{Changes, Rule};
pub use rules::{InvalidRules, MAX_FILE, MAX_RULES, Rules};
pub use tracked::Flow;
pub use treatment::{StreamProtection, Treatment};
