//! The contents of a stream, for schemes that depend on it.

use std::fmt;

use super::Bucket;

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
    /// Every kind.
    pub const ALL: &[Self] = &[
        Self::Html,
        Self::Css,
        Self::Js,
        Self::Font,
        Self::Image,
        Self::Svg,
        Self::Xhr,
        Self::Video,
        Self::Other,
    ];

    /// Its name: `html`, `css`, `js`, `font`, `image`, `svg`, `data`, `video` or `other`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Css => "css",
            Self::Js => "js",
            Self::Font => "font",
            Self::Image => "image",
            Self::Svg => "svg",
            Self::Xhr => "data",
            Self::Video => "video",
            Self::Other => "other",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The kind for which the schemes of Marx 2020 take a MIME type, given with or without parameters.
    ///
    /// They look for words anywhere in the type, in this order, and do not know every type:
    ///
    /// * `javascript`, so that `application/x-javascript` is a script and `text/ecmascript` is not;
    /// * exactly `text/html` and `text/css`, so that `application/xhtml+xml` is data;
    /// * `xml` or `json`. Where `image` is found as well the result is [`Kind::Svg`], which schemes that
    ///   ask for data first treat as data, and other schemes as a picture;
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

/// The properties of a resource when it is requested (Marx 2020, sections 4.1 and 5.1), known by a browser or
/// by the server that has it: the extension of a priority that the schemes of the paper read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The kind of its contents.
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
    /// Its bucket in `bucket` and `bucket-html`, whatever its other properties; `None` for the bucket of its
    /// kind.
    pub bucket: Option<Bucket>,
    /// Its weight in `zeroweight` and `zeroweight-atf`, whatever its other properties: 255 goes first, one
    /// after the other, 254 to 1 share, and 0 goes last, one after the other. `None` for the weight of its
    /// kind.
    pub weight: Option<u8>,
}

impl Resource {
    /// A resource of the kind that [`Kind::from_mime`] returns, without further properties.
    #[must_use]
    pub fn from_mime(mime: &str) -> Self {
        Self { kind: Kind::from_mime(mime), ..Self::default() }
    }
}

impl fmt::Display for Resource {
    /// Formats it as its kind and its aspects by name, and its own bucket and weight: `image hero`,
    /// `js weight 255`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        let mut copy = *self;
        for aspect in Aspect::ALL {
            if *(aspect.of)(&mut copy) {
                write!(f, " {}", aspect.name)?;
            }
        }
        self.bucket.map_or(Ok(()), |bucket| write!(f, " bucket {bucket}"))?;
        self.weight.map_or(Ok(()), |weight| write!(f, " weight {weight}"))
    }
}

/// A property that a [`Resource`] may have besides its kind, by name.
#[derive(Clone, Copy, Debug)]
pub struct Aspect {
    /// The name, such as `hero`.
    pub name: &'static str,
    /// The resources that have it, in words that follow "resources that are".
    pub summary: &'static str,
    /// The field of the resource.
    pub of: fn(&mut Resource) -> &mut bool,
}

impl Aspect {
    /// Every aspect, in the order of the fields.
    pub const ALL: &[Self] = &[
        Self::new("main", "the document of the page", |r| &mut r.main),
        Self::new("head", "named in the head of the document", |r| &mut r.in_head),
        Self::new("late", "named behind the first image", |r| &mut r.after_first_image),
        Self::new("deferred", "scripts that nothing waits for", |r| &mut r.deferred),
        Self::new("preload", "requested before they are needed", |r| &mut r.preload),
        Self::new("critical", "needed to show the page", |r| &mut r.critical),
        Self::new("hero", "seen without scrolling", |r| &mut r.above_the_fold),
    ];

    const fn new(
        name: &'static str,
        summary: &'static str,
        of: fn(&mut Resource) -> &mut bool,
    ) -> Self {
        Self { name, summary, of }
    }

    /// The aspect with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|aspect| aspect.name == name)
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

    #[test]
    fn a_resource_is_described_in_words() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::by_name(kind.name()), Some(kind));
        }
        let mut resource = Resource::from_mime("image/png");
        assert_eq!(resource.to_string(), "image");
        for aspect in Aspect::ALL {
            *(aspect.of)(&mut resource) = true;
            assert!(resource.to_string().ends_with(aspect.name), "{resource}");
            assert_eq!(Aspect::by_name(aspect.name).map(|found| found.name), Some(aspect.name));
        }
        let resource =
            Resource { bucket: "63/1".parse().ok(), weight: Some(255), ..Resource::default() };
        assert_eq!(resource.to_string(), "other bucket 63/1 weight 255");
        assert!(Kind::by_name("hero").is_none() && Aspect::by_name("html").is_none());
    }
}
