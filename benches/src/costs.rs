//! What operations cost.

use serde::Serialize;

/// The costs of one operation, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Costs {
    /// Wall time; of operations that overlap, the whole time over their number.
    pub seconds: f64,
    /// CPU time of each end.
    pub server_cpu: f64,
    pub client_cpu: f64,
}

impl Costs {
    /// The costs of each of `count` operations that together have these.
    #[must_use]
    pub fn over(self, count: f64) -> Self {
        Self {
            seconds: self.seconds / count,
            server_cpu: self.server_cpu / count,
            client_cpu: self.client_cpu / count,
        }
    }

    /// How many operations end in a second.
    pub fn per_second(&self) -> f64 {
        1.0 / self.seconds
    }

    /// CPU time of both ends.
    pub fn cpu(&self) -> f64 {
        self.server_cpu + self.client_cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_share_what_all_cost() {
        let all = Costs { seconds: 2.0, server_cpu: 1.0, client_cpu: 3.0 };
        let each = all.over(4.0);
        assert_eq!(each, Costs { seconds: 0.5, server_cpu: 0.25, client_cpu: 0.75 });
        assert_eq!((each.per_second(), each.cpu()), (2.0, 1.0));
    }
}
