//! What more cores would give, from what is measured with a few.

/// The model in words, for the page.
pub const TEXT: &str = "\
The last table is a model, and not a measurement: n cores do n / (1 + g(n)) times as much as one, as long as \
nothing but the cores limits and each has something to do. g(n) is what an operation costs in addition because \
there are other workers: cache lines that another core has written, in the kernel and in the memory budget, locks, \
and connections that a client's thread has at the worker of another core. It is measured with the workers above. \
Either it levels off as the chance 1 − 1/n that another core was there last, or it grows with n − 1, as waiting for \
one lock does; what is right lies between. Datagrams of clients that have moved are handed over with the chance 1 − \
1/n, which is measured, too. The balance is for clients who all want equally much: the system deals K connections \
out by chance, so that the worker with the most has 1 + m · √(n/K) times its part, where m is the largest of n \
normal numbers on average, and when it is full, the others are not. Assumed are cores of equal speed with a part of \
the client on each, in one package, and a network device with a queue for each core.";

/// The largest of n independent standard normal numbers, on average, for n = 2, 4, 8, 16, 32 and 64.
const LARGEST: [f64; 6] = [0.564, 1.029, 1.424, 1.766, 2.070, 2.344];

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// How many workers were compared with one.
    pub workers: usize,
    /// By how much more an operation cost with them, as a share.
    pub more: f64,
    /// By how much more yet it cost if all clients had moved.
    pub moved: f64,
    pub connections: usize,
}

/// The chance that another of so many workers was chosen.
fn elsewhere(workers: usize) -> f64 {
    1.0 - 1.0 / workers as f64
}

impl Model {
    /// The part of the busiest of `cores` workers, as it should be over what it is. `cores` is a power of two, from 2
    /// to 64.
    pub fn balance(self, cores: usize) -> f64 {
        let largest = LARGEST[cores.ilog2() as usize - 1];
        1.0 / (1.0 + largest * (cores as f64 / self.connections as f64).sqrt())
    }

    fn speedup(self, cores: usize, growth: f64, moved: f64) -> f64 {
        // What is measured of moved clients is what one of them costs where some datagrams are handed over.
        let each = 1.0 + moved * self.moved.max(0.0) * elsewhere(cores) / elsewhere(self.workers);
        // Noise may make operations look cheaper.
        cores as f64 / ((1.0 + self.more.max(0.0) * growth) * each)
    }

    /// How much more `cores` do than one, if costs level off and this share of clients has moved.
    pub fn level(self, cores: usize, moved: f64) -> f64 {
        self.speedup(cores, elsewhere(cores) / elsewhere(self.workers), moved)
    }

    /// The same if each further worker adds as much as the first.
    pub fn growing(self, cores: usize, moved: f64) -> f64 {
        self.speedup(cores, (cores - 1) as f64 / (self.workers - 1) as f64, moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: Model = Model { workers: 2, more: 0.1, moved: 0.5, connections: 256 };

    #[test]
    fn what_was_measured_comes_out() {
        for speedup in [MODEL.level(2, 0.0), MODEL.growing(2, 0.0)] {
            assert!((speedup - 2.0 / 1.1).abs() < 0.01, "{speedup}");
        }
        assert!((MODEL.level(2, 1.0) - 2.0 / 1.1 / 1.5).abs() < 0.01);
    }

    #[test]
    fn costs_that_grow_are_worse_than_those_that_level_off() {
        assert!((MODEL.level(16, 0.0) - 16.0 / 1.1875).abs() < 0.2);
        assert!((MODEL.growing(16, 0.0) - 16.0 / 2.5).abs() < 0.1);
    }

    #[test]
    fn noise_is_no_gain() {
        let cheaper = Model { more: -0.1, ..MODEL };
        assert_eq!((cheaper.level(8, 0.0), cheaper.growing(8, 0.0)), (8.0, 8.0));
    }

    #[test]
    fn few_connections_are_dealt_out_unevenly() {
        // Half of 256 coins: the larger side has 52.5 % on average.
        assert!((0.5 / MODEL.balance(2) - 0.525).abs() < 0.001);
        assert!(MODEL.balance(16) < 0.71);
    }
}
