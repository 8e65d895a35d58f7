//! Packets that are acknowledged after they were declared lost.

use super::acknowledgement::acknowledge;
use super::*;
use crate::policy::{LossReaction, LossReactionFactory, LostData, Verdict};

#[test]
fn a_late_acknowledgement_frees_what_waits_to_be_sent_again() {
    for protection in [None, Some(Protection::tail(3, Duration::ZERO))] {
        let mut pair = Pair::connected();
        let first = pair.server.space().peek_pn();
        let id = pair.send_protected(Side::Server, 6_000, protection.clone());
        // All packets arrive so late that they count as lost.
        pair.mute(Side::Server);
        pair.flush(Side::Server);
        let next = pair.server.space().peek_pn();
        // The newest packet is acknowledged, so all packets below its threshold are lost.
        acknowledge(&mut pair, &[(next - 1, next)]);
        assert!(pair.server.stats().packets_lost > 0);
        acknowledge(&mut pair, &[(first, next)]);
        let before = pair.server.stats();
        assert!(before.spurious_losses > 0);
        assert_eq!(pair.server.conn().send_stream(id).outcome(), Some(crate::Outcome::Finished));
        pair.run_for(5 * SECOND);
        let after = pair.server.stats();
        let symbols = [before, after].map(|stats| stats.fec.source_symbols_sent);
        assert_eq!(symbols[0], symbols[1], "{protection:?}: no symbol is sent again");
        assert_eq!(after.streams.send_buffered, 0);
    }
}

/// Drops lost data close to its deadline, and holds all other data for a while.
#[derive(Debug, Clone, Default)]
struct Choosy {
    seen: Arc<Mutex<Vec<LostData>>>,
}

impl LossReaction for Choosy {
    fn on_lost(&mut self, now: Instant, lost: &LostData) -> Verdict {
        self.seen.lock().unwrap().push(lost.clone());
        match lost.deadline {
            Some(deadline) if deadline < now + lost.rtt / 2 => Verdict::Drop { code: 99 },
            _ => Verdict::Hold { until: now + 300 * MS },
        }
    }
}

impl LossReactionFactory for Choosy {
    fn name(&self) -> &str {
        "choosy"
    }

    fn build(&self) -> Box<dyn LossReaction> {
        Box::new(self.clone())
    }
}

#[test]
fn bare_data_can_be_held_and_given_up() {
    let choosy = Choosy::default();
    let mut pair = Pair::with_server(|server| server.loss_reaction = Arc::new(choosy.clone()));
    pair.lose_larger(Side::Server, 1_000, |n| n == 2);
    let held = pair.send_protected(Side::Server, 6_000, None);
    let start = pair.now;
    pair.takes(Side::Client, 6_000);
    assert!(pair.now - start > 300 * MS, "{:?}", pair.now - start);

    pair.lose_larger(Side::Server, 1_000, |n| n == 2);
    let deadline = Some(pair.now + 10 * MS);
    let message = crate::Message { deadline, size: 6_000, ..crate::Message::default() };
    let id = pair.open(Side::Server, None);
    pair.server.conn().send_stream(id).announce(message).unwrap();
    pair.write(Side::Server, id, 6_000);
    pair.server.conn().send_stream(id).finish().unwrap();
    pair.run_for(5 * SECOND);
    assert_eq!(pair.server.stats().streams.streams, 0, "the stream is over");
    let accepted = pair.client.conn().accept(Dir::Uni).unwrap();
    let mut got = 0;
    let end = loop {
        match pair.client.conn().recv_stream(accepted).read(&mut [0; 2_000]) {
            Ok(crate::Read::Data(len)) => got += len,
            end => break end,
        }
    };
    assert_eq!((end, got), (Err(ReadError::Reset(99)), 0), "a reset discards the rest");
    let seen = choosy.seen.lock().unwrap();
    assert_eq!(seen.iter().map(|lost| lost.stream).collect::<Vec<_>>(), [held, id]);
    assert_eq!(seen[1].deadline, deadline);
    assert!(seen.iter().all(|lost| lost.repair.is_none() && !lost.range.is_empty()));
}
