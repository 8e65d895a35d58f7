//! What a stream carries, for the schemes that decide by it.

/// The kind of a resource of a web page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A document.
    Html,
    /// A style sheet.
    Css,
    /// A script.
    Js,
    /// A font.
    Font,
    /// A picture.
    Image,
    /// What a script asked for, or data in XML or JSON.
    Xhr,
    /// Film or sound.
    Video,
    /// Anything else.
    #[default]
    Other,
}

/// What a browser knows of a resource when it asks for it (Marx 2020, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resource {
    /// What it is.
    pub kind: Kind,
    /// It is the document that was asked for first.
    pub main: bool,
    /// It is named in the head of the document.
    pub in_head: bool,
    /// It is named behind the first image.
    pub after_first_image: bool,
    /// A script that nothing waits for: `async` or `defer`.
    pub deferred: bool,
    /// It is asked for before it is needed: `preload`.
    pub preload: bool,
    /// The page cannot be shown without it.
    pub critical: bool,
    /// It is seen without scrolling.
    pub above_the_fold: bool,
}
