//! Connects to whichever address of a host answers first (Happy Eyeballs, RFC 8305).

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;

/// The delay before connecting to a host's next address (RFC 8305 section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// Addresses in the order in which they are tried: those of IPv4 and IPv6 by turns, beginning with the family that
/// the resolver has first, which is IPv6 unless this machine has none (RFC 8305 section 4). Within a family, the
/// resolver's order stays.
pub fn interleaved(found: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = found.first() else { return Vec::new() };
    let (ours, others): (Vec<SocketAddr>, Vec<SocketAddr>) =
        found.iter().partition(|address| address.is_ipv6() == first.is_ipv6());
    let (mut ours, mut others) = (ours.into_iter(), others.into_iter());
    let mut ordered = Vec::with_capacity(found.len());
    loop {
        let turn = [ours.next(), others.next()];
        if turn == [None, None] {
            return ordered;
        }
        ordered.extend(turn.into_iter().flatten());
    }
}

/// Begins an attempt at each address in turn, as long as no earlier one has succeeded: 250 ms after the one before,
/// or as soon as one has failed. Returns the first success.
///
/// # Errors
/// All attempts failed: the first failure, or `None` if there was no address. A failure that `is_final`, such as a
/// certificate that is not trusted, is an error at once, because the host's other addresses will have the same one.
pub async fn race<T, E, F>(
    addresses: Vec<SocketAddr>,
    mut begin: impl FnMut(SocketAddr) -> Result<F, E>,
    is_final: impl Fn(&E) -> bool,
) -> Result<T, Option<E>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let mut addresses = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut failure = None;
    loop {
        if let Some(address) = addresses.next() {
            match begin(address) {
                Ok(attempt) => {
                    attempts.spawn(attempt);
                }
                Err(error) => {
                    failure.get_or_insert(error);
                    continue;
                }
            }
        } else if attempts.is_empty() {
            return Err(failure);
        }
        tokio::select! {
            Some(outcome) = attempts.join_next() => match outcome {
                Ok(Ok(winner)) => return Ok(winner),
                Ok(Err(error)) if is_final(&error) => return Err(Some(error)),
                Ok(Err(error)) => {
                    failure.get_or_insert(error);
                }
                Err(_) => {}
            },
            () = tokio::time::sleep(STAGGER), if addresses.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Failed {
        Unreachable,
        Broken,
        Untrusted,
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| address(text)).collect()
    }

    #[test]
    fn families_take_turns_beginning_with_the_resolvers_first() {
        let six = ["[::1]:1", "[::2]:1", "[::3]:1"];
        let four = ["1.1.1.1:1", "2.2.2.2:1"];
        let found = addresses(&[six[0], six[1], six[2], four[0], four[1]]);
        let expected = addresses(&[six[0], four[0], six[1], four[1], six[2]]);
        assert_eq!(interleaved(&found), expected);
        let found = addresses(&[four[0], four[1], six[0]]);
        assert_eq!(interleaved(&found), addresses(&[four[0], six[0], four[1]]));
        assert_eq!(interleaved(&[]), []);
    }

    /// How an attempt ends: after so many milliseconds, in success or failure.
    type Ending = (u64, Result<(), Failed>);
    /// Milliseconds from the beginning, and the last part of an address.
    type Begun = Vec<(u64, u16)>;

    /// Races attempts that end so; returns when each began, the winner or the failure, and when that was known.
    async fn run(endings: Vec<Ending>) -> (Begun, Result<u16, Option<Failed>>, u64) {
        let start = Instant::now();
        let elapsed = move || start.elapsed().as_millis() as u64;
        let ports = (1..=endings.len() as u16).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let mut begun = Vec::new();
        let begin = |address: SocketAddr| {
            begun.push((elapsed(), address.port()));
            let (millis, ending) = endings[usize::from(address.port()) - 1];
            let attempt: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(async move {
                sleep(Duration::from_millis(millis)).await;
                ending.map(|()| address.port())
            });
            Ok(attempt)
        };
        let result = race(ports.collect(), begin, |&failed| failed == Failed::Untrusted).await;
        (begun, result, elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_attempt_begins_after_250_ms_or_a_failure() {
        let never = (1_000_000, Ok(()));
        let refused = (20, Err(Failed::Unreachable));
        // The third one answers, although the others are still tried.
        let (begun, result, took) = run(vec![never, never, (30, Ok(()))]).await;
        assert_eq!((begun, result), (vec![(0, 1), (250, 2), (500, 3)], Ok(3)));
        assert_eq!(took, 530);
        // An answer before the next attempt: there is none.
        let (begun, result, _) = run(vec![(249, Ok(())), never]).await;
        assert_eq!((begun, result), (vec![(0, 1)], Ok(1)));
        // A late answer of the first one counts.
        let (begun, result, took) = run(vec![(300, Ok(())), never]).await;
        assert_eq!((begun, result, took), (vec![(0, 1), (250, 2)], Ok(1), 300));
        // Failures do not wait.
        let (begun, result, took) = run(vec![refused, refused, (5, Ok(()))]).await;
        assert_eq!((begun, result, took), (vec![(0, 1), (20, 2), (40, 3)], Ok(3), 45));
        let (_, result, took) = run(vec![refused, (7, Err(Failed::Broken))]).await;
        assert_eq!(
            (result, took),
            (Err(Some(Failed::Unreachable)), 27),
            "the first failure is told"
        );
        let (begun, result, _) = run(vec![(1, Err(Failed::Untrusted)), never]).await;
        assert_eq!((begun, result), (vec![(0, 1)], Err(Some(Failed::Untrusted))));
        assert_eq!(run(Vec::new()).await.1, Err(None));
    }
}
