//! Setters for settings that may grow.

/// Setters of public fields, each with its name, the field and the field's type, for the `impl` of a type that
/// other crates cannot build with a literal because it may get more fields.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($setter:ident: $field:ident = $type:ty,)+) => {$(
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $setter(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    )+};
}
