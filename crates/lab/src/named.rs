//! Enums whose variants have names in tables.

/// Declares an enum with a name for each variant, and with the list of its variants.
macro_rules! named {
    ($(#[$about:meta])* $vis:vis enum $name:ident {
        $($(#[$of_variant:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$of_variant])* $variant),+ }

        impl $name {
            /// All of them, in their order in tables.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Its name in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}
