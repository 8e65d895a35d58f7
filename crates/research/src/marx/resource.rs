//! What a stream carries, for schemes that depend on it.

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
    /// A picture, but not in SVG.
    Image,
    /// A picture in SVG, which some schemes take for data: its MIME type says XML.
    Svg,
    /// A response to a script, or data in XML or JSON.
    Xhr,
    /// Film or sound.
    Video,
    /// Anything else.
    #[default]
    Other,
}

impl Kind {
    /// What the schemes of Marx 2020 take a MIME type for, given with or without parameters.
    ///
    /// They look for words anywhere in the type, in this order, and do not know every type:
    ///
    /// * `javascript`, so that `application/x-javascript` is a script and `text/ecmascript` is not;
    /// * exactly `text/html` and `text/css`, so that `application/xhtml+xml` is data;
    /// * `xml` or `json`. Where `image` is found as well the result is [`Kind::Svg`], which the
    ///   schemes that ask for data first treat as data, and the others as a picture;
    /// * `font`, `image`, `video`. There is no word for sound: it is [`Kind::Other`].
    #[must_use]
    pub fn from_mime(mime: &str) -> Self {
        let mime = mime.split(';').next().unwrap_or_default().trim();
        let has = |word: &str| {
            let words = mime.as_bytes().windows(word.len());
            words.into_iter().any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
        };
        if has("javascript") {
            Self::Js
        } else if mime.eq_ignore_ascii_case("text/html") {
            Self::Html
        } else if mime.eq_ignore_ascii_case("text/css") {
            Self::Css
        } else if has("xml") || has("json") {
            if has("image") { Self::Svg } else { Self::Xhr }
        } else if has("font") {
            Self::Font
        } else if has("image") {
            Self::Image
        } else if has("video") {
            Self::Video
        } else {
            Self::Other
        }
    }
}

/// What a browser knows of a resource when it requests it (Marx 2020, section 3.1): the extension of
/// a priority that the schemes of the paper read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resource {
    /// What it is.
    pub kind: Kind,
    /// It is the document that was requested first.
    pub main: bool,
    /// It is named in the head of the document.
    pub in_head: bool,
    /// It is named behind the first image.
    pub after_first_image: bool,
    /// A script that nothing waits for: `async` or `defer`.
    pub deferred: bool,
    /// It is requested before it is needed: `preload`.
    pub preload: bool,
    /// The page cannot be shown without it.
    pub critical: bool,
    /// It is seen without scrolling.
    pub above_the_fold: bool,
}

impl Resource {
    /// A resource of the kind that [`Kind::from_mime`] says, of which nothing else is known.
    #[must_use]
    pub fn from_mime(mime: &str) -> Self {
        Self { kind: Kind::from_mime(mime), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mime_types_are_searched_for_words_in_the_published_order() {
        for (mime, kind) in [
            ("text/html", Kind::Html),
            ("TEXT/HTML; charset=utf-8", Kind::Html),
            ("text/html5", Kind::Other),
            ("application/xhtml+xml", Kind::Xhr),
            ("text/css", Kind::Css),
            ("text/x-css", Kind::Other),
            ("application/javascript", Kind::Js),
            ("application/x-javascript;charset=utf-8", Kind::Js),
            ("text/ecmascript", Kind::Other),
            ("application/ld+json", Kind::Xhr),
            ("text/xml", Kind::Xhr),
            ("image/svg+xml", Kind::Svg),
            ("image/webp", Kind::Image),
            ("font/woff2", Kind::Font),
            ("application/x-font-woff", Kind::Font),
            ("application/vnd.ms-fontobject", Kind::Font),
            ("video/mp4", Kind::Video),
            ("audio/mpeg", Kind::Other),
            ("application/octet-stream", Kind::Other),
            ("", Kind::Other),
            ("text/plain; was=text/html", Kind::Other),
        ] {
            assert_eq!(Kind::from_mime(mime), kind, "{mime}");
            assert_eq!(Resource::from_mime(mime), Resource { kind, ..Resource::default() });
        }
    }
}
