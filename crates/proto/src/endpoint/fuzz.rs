//! Entry point for fuzzing.

use super::token::{AddressTokens, TokenVerdict};
use crate::ids::ConnectionId;
use crate::wire::version::Version;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::time::Instant;

/// Presents `data` as a token, by itself and as a change to proper tokens. Only a proper token proves an
/// address.
pub fn tokens(data: &[u8]) {
    let (now, remote) = (Instant::now(), ([192, 0, 2, 1], 1000).into());
    let mut tokens = AddressTokens::new(None, StdRng::from_seed([7; 32]));
    let dcid = ConnectionId::new(&[5; 8]).unwrap_or_default();
    let proper = [
        tokens.for_retry(now, Version::V1, remote, &dcid, &dcid),
        tokens.for_later(now, Version::V1, remote),
    ];
    for proper in proper.into_iter().flatten() {
        let mut changed = proper.clone();
        changed.resize(proper.len().max(data.len()), 0);
        changed.iter_mut().zip(data).for_each(|(byte, change)| *byte ^= change);
        for token in [&changed[..], data] {
            let verdict = tokens.judge(now, Version::V1, remote, &dcid, token);
            let proves = match verdict {
                TokenVerdict::Retried { .. } | TokenVerdict::Known => true,
                TokenVerdict::Unknown | TokenVerdict::Invalid => false,
            };
            assert_eq!(proves, token == proper, "{verdict:?}");
        }
    }
}
