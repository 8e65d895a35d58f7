//! A value for each packet number space. The spaces of the handshake take memory only while it lasts.

use crate::ids::SpaceId;
use std::ops::{Index, IndexMut};

/// A state of a packet number space that a space has before and after its use.
pub trait Unused: Sized + 'static {
    /// The state of a space of the handshake that is not in use.
    const UNUSED: &'static Self;

    /// The same state, to be changed.
    fn unused() -> Self;
}

/// A value for each packet number space. The spaces of the handshake take memory once one of them is borrowed
/// to be changed, until the later one is [forgotten](Self::forget). Else they read as
/// [unused](Unused::UNUSED).
#[derive(Debug)]
pub struct BySpace<T> {
    data: T,
    /// The spaces of Initial and of Handshake packets.
    early: Option<Box<[T; 2]>>,
}

impl<T: Unused> BySpace<T> {
    /// The space of 1-RTT packets alone is in use.
    pub const fn new(data: T) -> Self {
        Self { data, early: None }
    }

    /// The spaces that may be in use, in their order.
    #[inline]
    pub fn in_use(&self) -> &'static [SpaceId] {
        if self.early.is_some() { &SpaceId::ALL } else { &[SpaceId::Data] }
    }

    /// The value of a space that may be in use.
    #[inline]
    pub fn get_mut(&mut self, space: SpaceId) -> Option<&mut T> {
        match space {
            SpaceId::Data => Some(&mut self.data),
            SpaceId::Initial | SpaceId::Handshake => {
                self.early.as_deref_mut().map(|early| &mut early[space as usize])
            }
        }
    }

    /// Forgets a space of the handshake, and with that of Handshake packets the Initial space. The space of
    /// 1-RTT packets stays.
    pub fn forget(&mut self, space: SpaceId) {
        match (space, &mut self.early) {
            (SpaceId::Initial, Some(early)) => early[space as usize] = T::unused(),
            (SpaceId::Handshake, early) => *early = None,
            (SpaceId::Initial, None) | (SpaceId::Data, _) => {}
        }
    }
}

/// The space of 1-RTT packets is asked for all the time, the others only at first.
impl<T: Unused> BySpace<T> {
    #[cold]
    fn early(&self, space: SpaceId) -> &T {
        self.early.as_deref().map_or(T::UNUSED, |early| &early[space as usize])
    }

    #[cold]
    fn early_mut(&mut self, space: SpaceId) -> &mut T {
        let unused = || Box::new([T::unused(), T::unused()]);
        &mut self.early.get_or_insert_with(unused)[space as usize]
    }
}

impl<T: Unused> Index<SpaceId> for BySpace<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, space: SpaceId) -> &T {
        if space == SpaceId::Data { &self.data } else { self.early(space) }
    }
}

impl<T: Unused> IndexMut<SpaceId> for BySpace<T> {
    #[inline(always)]
    fn index_mut(&mut self, space: SpaceId) -> &mut T {
        if space == SpaceId::Data { &mut self.data } else { self.early_mut(space) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Unused for u32 {
        const UNUSED: &'static Self = &0;

        fn unused() -> Self {
            0
        }
    }

    #[test]
    fn the_spaces_of_the_handshake_are_in_use_from_a_change_until_they_are_forgotten() {
        let mut spaces = BySpace::new(7_u32);
        assert_eq!(SpaceId::ALL.map(|id| spaces[id]), [0, 0, 7]);
        assert_eq!(spaces.get_mut(SpaceId::Initial), None);
        assert_eq!(spaces.in_use(), [SpaceId::Data]);
        spaces[SpaceId::Initial] += 1;
        spaces[SpaceId::Handshake] += 3;
        spaces[SpaceId::Data] += 1;
        assert_eq!(SpaceId::ALL.map(|id| spaces[id]), [1, 3, 8]);
        assert_eq!(spaces.in_use(), SpaceId::ALL);
        spaces.forget(SpaceId::Initial);
        assert_eq!(SpaceId::ALL.map(|id| spaces[id]), [0, 3, 8]);
        spaces.forget(SpaceId::Data);
        spaces.forget(SpaceId::Handshake);
        assert_eq!(SpaceId::ALL.map(|id| spaces[id]), [0, 0, 8]);
        assert_eq!(spaces.in_use(), [SpaceId::Data]);
    }
}
