//! The connections of an endpoint, their identifiers and their timers.

use super::entry::{Connection, Entry};
use crate::Error;
use quiche::{Config, ConnectionId};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::task::Waker;
use std::time::Instant;

/// Bytes of our connection identifiers, as quinn has it.
pub const ID: usize = 8;

/// The state of an endpoint.
pub struct State {
    pub config: Config,
    pub local: SocketAddr,
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    by_id: HashMap<Vec<u8>, usize>,
    /// Connections that the loop has to look after.
    pub touched: Vec<usize>,
    timers: BTreeSet<(Instant, usize)>,
    /// Wakes the loop while it has nothing to do.
    pub idle: Option<Waker>,
    pub incoming: VecDeque<usize>,
    pub acceptor: Option<Waker>,
    random: SystemRandom,
}

impl State {
    pub fn new(config: Config, local: SocketAddr) -> Self {
        Self {
            config,
            local,
            entries: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::new(),
            touched: Vec::new(),
            timers: BTreeSet::new(),
            idle: None,
            incoming: VecDeque::new(),
            acceptor: None,
            random: SystemRandom::new(),
        }
    }

    /// The connection to which a datagram belongs, or the client that it opens.
    pub fn find(&mut self, datagram: &mut [u8], from: SocketAddr) -> Option<usize> {
        let first = *datagram.first()?;
        if first & 0x80 == 0 {
            return self.by_id.get(datagram.get(1..=ID)?).copied();
        }
        let header = quiche::Header::from_slice(datagram, ID).ok()?;
        if let Some(index) = self.by_id.get(&*header.dcid) {
            return Some(*index);
        }
        let opens =
            header.ty == quiche::Type::Initial && quiche::version_is_supported(header.version);
        if !opens {
            return None;
        }
        let id = self.new_id().ok()?;
        let (scid, config) = (ConnectionId::from_ref(&id), &mut self.config);
        let accept = quiche::accept_with_buf_factory;
        let connection = accept(&scid, None, self.local, from, config).ok()?;
        // The client uses an identifier of its own until it knows ours.
        let index = self.insert(connection, vec![id.to_vec(), header.dcid.to_vec()]);
        self.incoming.push_back(index);
        if let Some(waker) = self.acceptor.take() {
            waker.wake();
        }
        Some(index)
    }

    pub fn new_id(&self) -> Result<[u8; ID], Error> {
        let mut id = [0; ID];
        self.random.fill(&mut id).map_err(|_| "no random numbers")?;
        Ok(id)
    }

    pub fn insert(&mut self, connection: Connection, ids: Vec<Vec<u8>>) -> usize {
        let index = self.free.pop().unwrap_or(self.entries.len());
        if index == self.entries.len() {
            self.entries.push(None);
        }
        self.by_id.extend(ids.iter().map(|id| (id.clone(), index)));
        self.entries[index] = Some(Entry::new(connection, ids));
        index
    }

    pub fn get(&mut self, index: usize) -> Option<&mut Entry> {
        self.entries.get_mut(index)?.as_mut()
    }

    /// Lists a connection that has been touched.
    pub fn list(&mut self, index: usize) {
        if let Some(entry) = self.entries.get_mut(index).and_then(Option::as_mut)
            && entry.is_touched
            && !entry.is_listed
        {
            entry.is_listed = true;
            self.touched.push(index);
        }
    }

    /// Puts the connections that have been touched since the last time into the empty list `touched`.
    pub fn take_touched(&mut self, touched: &mut Vec<usize>) {
        std::mem::swap(&mut self.touched, touched);
        for &index in &*touched {
            if let Some(entry) = self.get(index) {
                (entry.is_touched, entry.is_listed) = (false, false);
            }
        }
    }

    pub fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Tells connections whose time has come.
    pub fn expire(&mut self, now: Instant) {
        self.idle = None;
        while let Some(&(time, index)) = self.timers.first().filter(|(time, _)| *time <= now) {
            self.timers.remove(&(time, index));
            let Some(entry) = self.entries[index].as_mut() else { continue };
            entry.timer = None;
            // What has happened since may have put it off.
            if entry.connection.timeout_instant().is_some_and(|timeout| timeout <= now) {
                entry.connection.on_timeout();
            }
            entry.wake();
            entry.touch();
            self.list(index);
        }
    }

    /// The time of the first timer.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Sets the timer of a connection after everything has been sent, or removes the connection once it is over.
    pub fn settle(&mut self, index: usize) {
        let Some(entry) = self.entries[index].as_mut() else { return };
        entry.on_flushed();
        if entry.has_ended() {
            entry.wake();
        }
        if entry.connection.is_closed() && !entry.has_handle {
            let (ids, timer) = (std::mem::take(&mut entry.ids), entry.timer);
            for id in &ids {
                self.by_id.remove(id);
            }
            if let Some(timer) = timer {
                self.timers.remove(&(timer, index));
            }
            self.entries[index] = None;
            self.touched.retain(|touched| *touched != index);
            self.free.push(index);
            return;
        }
        // A timer that has moved on is found when the old one expires.
        let timeout = entry.connection.timeout_instant();
        if let Some(timeout) = timeout.filter(|timeout| entry.timer.is_none_or(|t| *timeout < t)) {
            if let Some(timer) = entry.timer {
                self.timers.remove(&(timer, index));
            }
            entry.timer = Some(timeout);
            self.timers.insert((timeout, index));
        }
    }
}
