//! Parts of a priority for schedulers of other crates.

use std::any::Any;
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A value of any type that says more about how a stream ranks, for schedulers that read that type.
/// Other schedulers ignore it.
///
/// A clone shares the value. Two extensions are equal if their types and values are.
///
/// ```
/// use sutura_schedule::Priority;
///
/// #[derive(Debug, PartialEq, Eq, Hash)]
/// struct Viewers(u32);
///
/// let priority = Priority::default().with_extension(Viewers(7));
/// assert_eq!(priority.extension::<Viewers>(), Some(&Viewers(7)));
/// assert_eq!(priority.extension::<u32>(), None);
/// ```
#[derive(Clone)]
pub struct Extension(Arc<dyn Value>);

/// The abilities of a value. The value itself implements them, because its type is not known.
trait Value: Any + Debug + Send + Sync {
    fn is_equal(&self, other: &dyn Value) -> bool;
    fn hash_into(&self, state: &mut dyn Hasher);
}

impl<T: Any + Debug + Eq + Hash + Send + Sync> Value for T {
    fn is_equal(&self, other: &dyn Value) -> bool {
        (other as &dyn Any).downcast_ref::<T>() == Some(self)
    }

    fn hash_into(&self, mut state: &mut dyn Hasher) {
        self.type_id().hash(&mut state);
        self.hash(&mut state);
    }
}

impl Extension {
    /// An extension that is `value`.
    pub fn new<T: Any + Debug + Eq + Hash + Send + Sync>(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// The value, if it is a `T`.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        (&*self.0 as &dyn Any).downcast_ref()
    }
}

impl PartialEq for Extension {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_equal(&*other.0)
    }
}

impl Eq for Extension {}

impl Hash for Extension {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_into(state);
    }
}

impl Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn extensions_are_equal_if_type_and_value_are() {
        let hasher = std::hash::RandomState::new();
        let hash = |extension: &Extension| hasher.hash_one(extension);
        let (a, b) = (Extension::new(7u32), Extension::new(7u32));
        assert_eq!((&a, hash(&a)), (&b, hash(&b)));
        for other in [Extension::new(8u32), Extension::new(7i32), Extension::new("7")] {
            assert_ne!(a, other);
            assert_ne!(hash(&a), hash(&other));
        }
        assert_eq!((a.get::<u32>(), a.get::<i32>()), (Some(&7), None));
        assert_eq!(format!("{a:?}"), "7");
    }
}
