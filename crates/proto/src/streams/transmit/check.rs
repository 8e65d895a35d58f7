//! The invariants of all streams of a connection.

use super::Streams;
use crate::ids::StreamId;
use crate::invariant::ensure;

impl Streams {
    /// Checks the invariants that hold between any two calls. Visits every stream.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), String> {
        let out = &self.out;
        let (mut fresh, mut pooled, mut waiting) = (0, 0, 0);
        let (mut lost, mut scheduled) = (false, false);
        for stream in self.table.iter() {
            let Some(send) = stream.halves.send() else { continue };
            let told = |wrong| format!("{:?}: {wrong}", stream.id);
            send.check().map_err(told)?;
            let ready = send.fresh || (out.in_turn && send.resends > 0);
            ensure(send.scheduled == ready, || {
                told(format!("ready to send: {ready}, in the scheduler: {}", send.scheduled))
            })?;
            ensure(!stream.is_done(), || told("it is done and was not removed".to_owned()))?;
            fresh += usize::from(send.fresh);
            pooled += send.pooled;
            waiting += usize::from(send.pool_turn.get().is_some());
            lost |= send.resends > 0;
            scheduled |= send.scheduled;
        }
        ensure(out.fresh == fresh, || format!("{} fresh streams, {fresh} counted", out.fresh))?;
        let pool = (out.pool.used(), out.pool.waiting());
        ensure(pool == (pooled, waiting), || format!("pool {pool:?}, not {pooled}, {waiting}"))?;
        ensure(out.order.next().is_some() == lost, || {
            format!("data is lost: {lost}, the order of resending names {:?}", out.order.next())
        })?;
        self.check_members()?;
        let next = out.scheduler.next(usize::MAX);
        ensure(scheduled || next.is_none(), || format!("the scheduler names {next:?} in vain"))
    }

    /// The sums over the streams of each coding session agree with a visit of all streams.
    fn check_members(&self) -> Result<(), String> {
        self.out.members.sessions().try_for_each(|session| {
            let kept = (self.members(session), self.known_unsent(session));
            let visited = self.visit_unsent(session);
            ensure(kept == visited, || format!("session {session}: {kept:?}, not {visited:?}"))
        })
    }

    /// How many lost frames of a stream wait to be sent again.
    pub fn resends(&self, id: StreamId) -> usize {
        self.send_half(id).map_or(0, |send| send.resends)
    }

    /// How many streams have lost frames that wait to be sent again. Visits every stream.
    pub fn resending(&self) -> usize {
        let halves = self.table.iter().filter_map(|stream| stream.halves.send());
        halves.filter(|send| send.resends > 0).count()
    }

    /// Checks that no state is left once all streams are over.
    ///
    /// # Errors
    /// The first piece of state that is left.
    pub fn check_nothing_left(&self) -> Result<(), String> {
        let left: Vec<StreamId> = self.table.iter().map(|stream| stream.id).take(8).collect();
        ensure(left.is_empty(), || format!("streams such as {left:?}"))?;
        let used = self.out.pool.used();
        ensure(used == 0, || format!("{used} bytes in send buffers"))?;
        let member = self.out.members.sessions().find(|session| self.members(*session) > 0);
        ensure(member.is_none(), || format!("streams in session {member:?}"))?;
        ensure(self.out.scheduler.next(usize::MAX).is_none(), || "an active stream".to_owned())
    }
}
