//! Congestion control: the seam and its algorithms.
