//! Playing a page load back through a scheduler (Marx 2020, section 5.2).
//!
//! A wire takes one packet every 10 ms. Each packet carries one stream, so the last packet of a response
//! takes as much time as any other. No packet is lost, and a request takes no time. Between the scheduler and
//! the wire is a buffer: packets in it keep their order, even if more urgent packets come later.

use std::collections::VecDeque;
use std::time::Duration;

use sutura_schedule::{Priority, Scheduler};

use super::page::Page;
use super::requests::Load;

/// The time from one packet to the next.
const SLOT: Duration = Duration::from_millis(10);
/// The size of a packet in bytes.
const PACKET: usize = 1400;

/// Plays a page back. The scheduler may be `buffer` bytes ahead of the wire; `priority` returns the server's
/// information about each resource. `None` if the page is never complete because the scheduler does not serve
/// a stream. Tells `packet` which resource each packet on the wire carries.
pub fn play(
    page: &Page,
    scheduler: &mut dyn Scheduler,
    buffer: usize,
    priority: impl Fn(usize) -> Priority,
    mut packet: impl FnMut(usize),
) -> Option<Load> {
    let mut requests = page.requests();
    let mut server = PlayedServer::new(page, buffer);
    let mut now = Duration::ZERO;
    while !requests.is_done() {
        while let Some(index) = requests.next(now) {
            scheduler.insert(index as u64, priority(index));
            scheduler.activate(index as u64);
        }
        if let Some((index, bytes)) = server.send(scheduler) {
            now += SLOT;
            packet(index);
            requests.arrive(index, bytes as u64, now);
        } else {
            // The wire is idle until the next request.
            let slots = requests.next_due()?.as_nanos().div_ceil(SLOT.as_nanos());
            now = SLOT * u32::try_from(slots).ok()?;
        }
    }
    requests.load()
}

struct PlayedServer {
    /// Bytes of each resource that the scheduler has not given out.
    left: Vec<u64>,
    /// Packets on their way to the wire: resource and bytes.
    queue: VecDeque<(usize, usize)>,
    queued: usize,
    buffer: usize,
}

impl PlayedServer {
    fn new(page: &Page, buffer: usize) -> Self {
        let left = page.resources.iter().map(|r| r.bytes).collect();
        Self { left, queue: VecDeque::new(), queued: 0, buffer }
    }

    /// The next packet on the wire: which resource, and how many bytes of it.
    fn send(&mut self, scheduler: &mut dyn Scheduler) -> Option<(usize, usize)> {
        while self.queue.is_empty() || self.queued + PACKET <= self.buffer {
            let Some(grant) = scheduler.next(PACKET) else { break };
            let index = grant.stream as usize;
            let bytes = usize::try_from(self.left[index]).map_or(PACKET, |left| left.min(PACKET));
            self.left[index] -= bytes as u64;
            scheduler.charge(grant.stream, bytes);
            if self.left[index] == 0 {
                scheduler.remove(grant.stream);
            }
            self.queue.push_back((index, bytes));
            self.queued += bytes;
        }
        let (index, bytes) = self.queue.pop_front()?;
        self.queued -= bytes;
        Some((index, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::Trigger;
    use super::*;
    use sutura_research::marx::{Kind, dfifo, fifo, rr};
    use sutura_schedule::Scheme;

    const MS: Duration = Duration::from_millis(1);

    fn load(scheme: Scheme, buffer: usize, resources: &[(Kind, u64, Trigger)]) -> Load {
        let page = Page::of(resources);
        let priority =
            |index: usize| Priority::default().with_extension(page.resources[index].resource);
        play(&page, &mut *scheme.build(), buffer, priority, |_| {}).unwrap()
    }

    fn millis(times: &[Duration]) -> Vec<u128> {
        times.iter().map(Duration::as_millis).collect()
    }

    #[test]
    fn a_packet_takes_ten_milliseconds_however_short_it_is() {
        let resources = [
            (Kind::Html, 1401, Trigger::Start(Duration::ZERO)),
            (Kind::Image, 10, Trigger::After(0, 25 * MS)),
            (Kind::Image, 10, Trigger::After(1, 30 * MS)),
        ];
        let load = load(fifo::SCHEME, 0, &resources);
        assert_eq!(millis(&load.requested), [0, 50, 90]);
        assert_eq!(millis(&load.completed), [20, 60, 100]);
    }

    /// A document of 2 packets; in its first one a style sheet of 2 and an image of 3 packets are
    /// named, and by the style sheet a font of 1.
    const PAGE: [(Kind, u64, Trigger); 4] = [
        (Kind::Html, 2800, Trigger::Start(Duration::ZERO)),
        (Kind::Css, 2800, Trigger::During(0, 0.5)),
        (Kind::Image, 4200, Trigger::During(0, 0.5)),
        (Kind::Font, 1400, Trigger::After(1, Duration::ZERO)),
    ];

    #[test]
    fn a_small_page_goes_as_computed_by_hand() {
        let completed = |scheme, buffer| millis(&load(scheme, buffer, &PAGE).completed);
        // H H C C I I I F: the font is asked for last, while the image waits.
        assert_eq!(completed(fifo::SCHEME, 0), [20, 40, 70, 80]);
        // H H C C F I I I: the font overtakes the image.
        assert_eq!(completed(dfifo::SCHEME, 0), [20, 40, 80, 50]);
        // The font does not overtake it if all packets of the image are in the buffer by then.
        assert_eq!(completed(dfifo::SCHEME, 100_000), [20, 40, 70, 80]);
        // A packet of the image is there already with room for two: H H C C I F I I.
        assert_eq!(completed(dfifo::SCHEME, 2800), [20, 40, 80, 60]);
    }

    #[test]
    fn in_turns_each_stream_gets_one_packet() {
        let start = Trigger::Start(Duration::ZERO);
        let page = [1400, 4200, 2800].map(|bytes| (Kind::Image, bytes, start));
        // A B C B C B.
        assert_eq!(millis(&load(rr::SCHEME, 0, &page).completed), [10, 60, 50]);
        // The buffer is filled in turns, too.
        assert_eq!(millis(&load(rr::SCHEME, 100_000, &page).completed), [10, 60, 50]);
    }
}
