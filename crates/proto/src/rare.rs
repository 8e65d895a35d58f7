//! State that most connections never have.

use std::ops::{Deref, DerefMut};

/// A state that most connections never have.
pub trait Uncommon: Default + 'static {
    /// The state of a connection that does not have any.
    fn none() -> &'static Self;
}

/// A state that takes up a pointer until it is changed for the first time. Until then it reads as
/// [`Uncommon::none`]. Every mutable access but [`Self::get_mut`] allocates it.
#[derive(Debug)]
pub struct Rare<T>(Option<Box<T>>);

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Rare<T> {
    /// The state, unless it was never changed.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }
}

impl<T: Uncommon> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(state) => state,
            None => T::none(),
        }
    }
}

impl<T: Uncommon> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Uncommon for u64 {
        fn none() -> &'static Self {
            &0
        }
    }

    #[test]
    fn a_state_is_allocated_when_it_changes() {
        let mut rare = Rare::<u64>::default();
        assert_eq!((*rare, rare.get_mut()), (0, None));
        *rare += 7;
        assert_eq!((*rare, rare.get_mut()), (7, Some(&mut 7)));
    }
}
