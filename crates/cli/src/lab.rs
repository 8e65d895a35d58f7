//! `sutura lab`: the experiments.
