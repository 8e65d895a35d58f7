//! Brings a response to its place, over several attempts if need be: a later one goes on where an earlier one broke
//! off, or begins anew.

use std::fs;
use std::io;

use super::head::Head;
use super::range::{ContentRange, ContinueAt, strong_etag};
use super::sink::{Sink, Target};
use crate::failure::{Exit, Failure};
use crate::file::cannot_write;

/// Partial Content (RFC 9110 section 15.3.7).
const PARTIAL: u16 = 206;

/// The part of a response that is still wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumption {
    /// Its first byte.
    pub from: u64,
    /// The validator of what came before, if it is known: otherwise the user vouches for it.
    pub etag: Option<String>,
}

/// Why a part may be put behind what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ground {
    /// There is none.
    Nothing,
    /// The user says so.
    User,
    /// It has the same strong validator.
    Etag(String),
}

/// With what a response begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// With the first byte, as was asked.
    Whole,
    /// With the first byte, although a part was asked for.
    Anew,
    /// With the part that was asked for.
    Continued,
}

/// A response on its way to its place.
#[derive(Debug)]
pub struct Delivery {
    target: Target,
    /// Whether a file is written in place, so that what came stays if the rest does not come.
    in_place: bool,
    /// Whether parts may be asked for.
    resumable: bool,
    sink: Option<Sink>,
    /// Bytes of the body that are in their place.
    position: u64,
    /// Whether anything was written.
    written: bool,
    ground: Ground,
}

impl Delivery {
    /// A delivery that begins where `continue_at` says. Unless it is `resumable`, parts are not asked for.
    ///
    /// # Errors
    /// There is nothing to continue there.
    pub fn new(
        target: Target,
        continue_at: Option<ContinueAt>,
        resumable: bool,
    ) -> Result<Self, Failure> {
        let position = continue_at.map_or(Ok(0), |at| begin_at(&target, at))?;
        let in_place = continue_at.is_some();
        let ground = if in_place { Ground::User } else { Ground::Nothing };
        Ok(Self { target, in_place, resumable, sink: None, position, written: false, ground })
    }

    /// What a request is to ask for, unless it is the whole.
    pub fn resumption(&self) -> Option<Resumption> {
        let etag = match &self.ground {
            Ground::Nothing => return None,
            Ground::User => None,
            Ground::Etag(etag) => Some(etag.clone()),
        };
        (self.position > 0 && self.resumable).then_some(Resumption { from: self.position, etag })
    }

    /// Whether there is nothing before the response, so that another one could come instead.
    pub const fn is_fresh(&self) -> bool {
        !self.written && !self.in_place
    }

    /// Whether the response of another attempt can be brought to its place.
    pub fn can_go_on(&self) -> bool {
        !self.written
            || self.resumption().is_some()
            || self.sink.as_ref().is_none_or(Sink::can_restart)
    }

    /// Whether a response says that there is nothing after what is there.
    pub fn is_complete(&self, response: &Head, asked: Option<&Resumption>) -> bool {
        let range = response.field("content-range").and_then(ContentRange::parse);
        let total = asked.map(|asked| ContentRange::Unsatisfied { total: asked.from });
        response.status == 416 && total.is_some() && range == total
    }

    /// Begins with a successful response to a request for `asked`, or for the whole.
    ///
    /// # Errors
    /// It is another part, or cannot be written.
    pub async fn begin(
        &mut self,
        response: &Head,
        asked: Option<&Resumption>,
    ) -> Result<Begun, Failure> {
        let etag = response.field("etag").and_then(strong_etag).map(Ground::Etag);
        if let Some(asked) = asked
            && response.status == PARTIAL
        {
            check_part(response, asked)?;
            self.ground = etag.unwrap_or(self.ground.clone());
            self.open().await?;
            return Ok(Begun::Continued);
        }
        if asked.is_some() && self.target == Target::Stdout && !self.written {
            let message = "the server sends the whole, and not what follows the first bytes";
            return Err(Failure::new(Exit::Status, message));
        }
        if self.written
            && let Some(sink) = &mut self.sink
        {
            sink.restart().await?;
        }
        (self.position, self.written) = (0, false);
        self.ground = etag.unwrap_or(Ground::Nothing);
        self.open().await?;
        Ok(if asked.is_some() { Begun::Anew } else { Begun::Whole })
    }

    /// Begins with what a server says about a failure. Returns false if that would be mixed with what has come
    /// before.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn begin_failure(&mut self) -> Result<bool, Failure> {
        if self.written || self.in_place && self.target != Target::Stdout {
            return Ok(false);
        }
        self.open().await.map(|()| true)
    }

    async fn open(&mut self) -> Result<(), Failure> {
        if self.sink.is_none() {
            let sink = if self.in_place {
                Sink::open_at(&self.target, self.position).await?
            } else {
                Sink::open(&self.target).await?
            };
            self.sink = Some(sink);
        }
        Ok(())
    }

    /// Writes lines before the body.
    ///
    /// # Errors
    /// They cannot be written.
    pub async fn write_head(&mut self, text: &[u8]) -> Result<(), Failure> {
        let Some(sink) = self.sink.as_mut().filter(|_| !text.is_empty()) else { return Ok(()) };
        self.written = true;
        sink.write(text).await
    }

    /// Writes the next part of the body.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.position += data.len() as u64;
        self.write_head(data).await
    }

    /// Ends a response that is complete.
    ///
    /// # Errors
    /// It cannot be written.
    pub async fn finish(&mut self) -> Result<(), Failure> {
        match self.sink.take() {
            Some(sink) => sink.finish().await,
            None => Ok(()),
        }
    }

    /// Ends a response that stays incomplete.
    pub async fn leave(&mut self) {
        if let Some(sink) = &mut self.sink {
            sink.leave().await;
        }
    }
}

/// Checks that a part is the one that was asked for.
fn check_part(response: &Head, asked: &Resumption) -> Result<(), Failure> {
    let value = response.field("content-range").unwrap_or_default();
    match ContentRange::parse(value) {
        Some(ContentRange::Part { first, .. }) if first == asked.from => Ok(()),
        _ => Err(Failure::new(
            Exit::Broken,
            format!(
                "the server sends another part than that from byte {} on (content-range: {})",
                asked.from,
                String::from_utf8_lossy(value)
            ),
        )),
    }
}

/// The byte at which a target is continued.
fn begin_at(target: &Target, at: ContinueAt) -> Result<u64, Failure> {
    let path = match (target, at) {
        (Target::Stdout, ContinueAt::Byte(byte)) => return Ok(byte),
        (Target::Stdout, ContinueAt::End) => {
            let message = "-C - goes by the size of a file: name one by -o, or a number of bytes";
            return Err(Failure::usage(message));
        }
        (Target::File(path), _) => path,
    };
    let size = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => {
            let shown = path.display();
            return Err(Failure::usage(format!(
                "-C continues regular files, which {shown} is not"
            )));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(cannot_write(path, &error)),
    };
    match at {
        ContinueAt::End => Ok(size),
        ContinueAt::Byte(byte) if byte <= size => Ok(byte),
        ContinueAt::Byte(byte) => Err(Failure::usage(format!(
            "{} has {size} bytes, and cannot be continued at byte {byte}",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first: u64) -> Head {
        Head::of(206, &[("content-range", &format!("bytes {first}-9/10"))])
    }

    /// A file of five bytes, its delivery, and what is asked for.
    fn begun(at: Option<ContinueAt>) -> (tempfile::TempDir, Delivery, Option<Resumption>) {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        fs::write(&path, "01234").unwrap();
        let delivery = Delivery::new(Target::File(path), at, true).unwrap();
        let asked = delivery.resumption();
        (scratch, delivery, asked)
    }

    fn content(scratch: &tempfile::TempDir) -> String {
        fs::read_to_string(scratch.path().join("file")).unwrap()
    }

    #[tokio::test]
    async fn a_file_is_continued_where_it_ends() {
        let (scratch, mut delivery, asked) = begun(Some(ContinueAt::End));
        assert_eq!(asked, Some(Resumption { from: 5, etag: None }));
        assert_eq!(delivery.begin(&part(5), asked.as_ref()).await, Ok(Begun::Continued));
        delivery.write(b"56").await.unwrap();
        // It breaks off: the user still vouches for what is there.
        delivery.leave().await;
        assert_eq!(content(&scratch), "0123456");
        let asked = delivery.resumption();
        assert_eq!(asked, Some(Resumption { from: 7, etag: None }));
        assert_eq!(delivery.begin(&part(7), asked.as_ref()).await, Ok(Begun::Continued));
        delivery.write(b"789").await.unwrap();
        delivery.finish().await.unwrap();
        assert_eq!(content(&scratch), "0123456789");
    }

    #[tokio::test]
    async fn another_part_or_the_whole_is_not_put_behind_it() {
        let (scratch, mut delivery, asked) = begun(Some(ContinueAt::End));
        for wrong in [part(4), part(6), Head::of(206, &[])] {
            let failure = delivery.begin(&wrong, asked.as_ref()).await.unwrap_err();
            assert_eq!(failure.exit, Exit::Broken);
        }
        assert_eq!(content(&scratch), "01234");
        let whole = Head::of(200, &[]);
        assert_eq!(delivery.begin(&whole, asked.as_ref()).await, Ok(Begun::Anew));
        delivery.write(b"abc").await.unwrap();
        // Nobody vouches for that.
        assert_eq!(delivery.resumption(), None);
        assert!(delivery.can_go_on());
        delivery.finish().await.unwrap();
        assert_eq!(content(&scratch), "abc");
        // Standard output gets what it wants, or nothing.
        let mut delivery = Delivery::new(Target::Stdout, Some(ContinueAt::Byte(3)), true).unwrap();
        let asked = delivery.resumption();
        assert_eq!(delivery.begin(&whole, asked.as_ref()).await.unwrap_err().exit, Exit::Status);
    }

    #[tokio::test]
    async fn only_a_strong_validator_lets_a_response_go_on() {
        for (etag, resumable, expected) in
            [("\"v1\"", true, Some("\"v1\"")), ("W/\"v1\"", true, None), ("\"v1\"", false, None)]
        {
            let (scratch, _, _) = begun(None);
            let target = Target::File(scratch.path().join("file"));
            let mut delivery = Delivery::new(target, None, resumable).unwrap();
            assert_eq!(delivery.resumption(), None);
            let whole = Head::of(200, &[("etag", etag)]);
            assert_eq!(delivery.begin(&whole, None).await, Ok(Begun::Whole));
            assert_eq!(delivery.resumption(), None, "nothing has come yet");
            delivery.write(b"ab").await.unwrap();
            let asked = delivery.resumption();
            let etag = expected.map(|etag| Some(etag.to_owned()));
            assert_eq!(asked, etag.map(|etag| Resumption { from: 2, etag }));
            assert!(delivery.can_go_on());
            // The old file stays until the new one is whole.
            assert_eq!(content(&scratch), "01234");
            let begun = delivery.begin(&Head::of(200, &[]), asked.as_ref()).await.unwrap();
            assert_eq!(begun, if asked.is_some() { Begun::Anew } else { Begun::Whole });
            delivery.write(b"new").await.unwrap();
            delivery.finish().await.unwrap();
            assert_eq!(content(&scratch), "new");
        }
    }

    #[test]
    fn a_complete_file_is_recognised() {
        let (_scratch, delivery, asked) = begun(Some(ContinueAt::End));
        let complete = |status, range| {
            delivery.is_complete(&Head::of(status, &[("content-range", range)]), asked.as_ref())
        };
        assert!(complete(416, "bytes */5"));
        assert!(!complete(416, "bytes */4") && !complete(416, "bytes */*"));
        assert!(!complete(404, "bytes */5"));
        assert!(!delivery.is_complete(&Head::of(416, &[("content-range", "bytes */5")]), None));
    }

    #[tokio::test]
    async fn the_words_of_a_failure_are_not_mixed_with_a_file() {
        let (scratch, mut delivery, _) = begun(Some(ContinueAt::End));
        assert_eq!(delivery.begin_failure().await, Ok(false));
        assert_eq!(content(&scratch), "01234");
        let (_scratch, mut delivery, _) = begun(None);
        assert_eq!(delivery.begin_failure().await, Ok(true));
        delivery.write(b"x").await.unwrap();
        assert_eq!(delivery.begin_failure().await, Ok(false));
    }

    #[test]
    fn what_cannot_be_continued_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |target: Target, at| Delivery::new(target, Some(at), true).map(|d| d.position);
        let file = Target::File(scratch.path().join("none"));
        assert_eq!(at(file.clone(), ContinueAt::End), Ok(0));
        assert!(at(file, ContinueAt::Byte(1)).unwrap_err().message.contains("has 0 bytes"));
        let directory = Target::File(scratch.path().to_owned());
        assert!(at(directory, ContinueAt::End).unwrap_err().message.contains("regular files"));
        assert!(
            at(Target::Stdout, ContinueAt::End).unwrap_err().message.contains("size of a file")
        );
        assert_eq!(at(Target::Stdout, ContinueAt::Byte(9)), Ok(9));
    }
}
