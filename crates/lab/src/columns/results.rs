//! Results of jobs as columns: as they are, or a row for each number and text in them.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::{Cells, Columns, TypedColumn};
use crate::results::{JobId, ResultStore};

/// How deep values may be within each other. Results of experiments have a tenth of it.
const MAX_DEPTH: usize = 64;

/// The results of an experiment's jobs, as they are kept: MessagePack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobResults(pub BTreeMap<JobId, Vec<u8>>);

/// A result cannot be taken apart.
#[derive(Debug, thiserror::Error)]
#[error("the result of job {job}: {error}")]
pub struct WalkError {
    job: JobId,
    error: rmp_serde::decode::Error,
}

impl JobResults {
    /// A row for each result: the columns `job` and `result`.
    #[must_use]
    pub fn raw(&self) -> Columns {
        let jobs = self.0.keys().map(|job| Some(job.to_string())).collect();
        let results = self.0.values().cloned().map(Some).collect();
        Columns(vec![
            TypedColumn::plain("job", Cells::Texts(jobs)),
            TypedColumn::plain("result", Cells::Bytes(results)),
        ])
    }

    /// A row for each number and each text of the results, in their order: the columns `job`, `path`, `number` and
    /// `text`, of which one of the last two is empty. A path has the names of fields and the places in lists, from 0,
    /// as `arms.0.latency.3`; a result that is a bare number has an empty one. Whether something holds is 1 or 0. What
    /// is absent has no row. Numbers are exact up to 2⁵³.
    ///
    /// # Errors
    /// A result is not MessagePack, has more than one value, or values that are within more than 64 others.
    pub fn long(&self) -> Result<Columns, WalkError> {
        let mut rows = Rows::default();
        for (job, result) in &self.0 {
            rows.job = job.to_string();
            rows.take(result).map_err(|error| WalkError { job: *job, error })?;
        }
        let texts = |cells: Vec<String>| Cells::Texts(cells.into_iter().map(Some).collect());
        Ok(Columns(vec![
            TypedColumn::plain("job", texts(rows.jobs)),
            TypedColumn::plain("path", texts(rows.paths)),
            TypedColumn::plain("number", Cells::Numbers(rows.numbers)),
            TypedColumn::plain("text", Cells::Texts(rows.texts)),
        ]))
    }
}

/// The rows of a long table.
#[derive(Default)]
struct Rows {
    /// The job whose result is taken apart, and the path to the present value.
    job: String,
    path: String,
    jobs: Vec<String>,
    paths: Vec<String>,
    numbers: Vec<Option<f64>>,
    texts: Vec<Option<String>>,
}

impl Rows {
    fn take(&mut self, result: &[u8]) -> Result<(), rmp_serde::decode::Error> {
        self.path.clear();
        let mut rest = result;
        let mut decoder = rmp_serde::Deserializer::new(&mut rest);
        // Ours is the tighter bound.
        decoder.set_max_depth(4 * MAX_DEPTH);
        Walk { rows: self, depth: MAX_DEPTH }.deserialize(&mut decoder)?;
        match rest.len() {
            0 => Ok(()),
            left => Err(rmp_serde::decode::Error::custom(format!("{left} bytes too many"))),
        }
    }

    fn push(&mut self, number: Option<f64>, text: Option<&str>) {
        self.jobs.push(self.job.clone());
        self.paths.push(self.path.clone());
        self.numbers.push(number);
        self.texts.push(text.map(str::to_owned));
    }
}

/// Takes one value apart, of which `depth` more may be within each other.
struct Walk<'a> {
    rows: &'a mut Rows,
    depth: usize,
}

impl Walk<'_> {
    /// Calls `inner` for a value within this one, with this name.
    fn within<T, E: serde::de::Error>(
        &mut self,
        name: impl fmt::Display,
        inner: impl FnOnce(Walk<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let depth = self.depth.checked_sub(1);
        let depth = depth.ok_or_else(|| E::custom("values are too deep within each other"))?;
        let length = self.rows.path.len();
        let dot = if length == 0 { "" } else { "." };
        // Writing to a string cannot fail.
        let _ = write!(self.rows.path, "{dot}{name}");
        let result = inner(Walk { rows: self.rows, depth });
        self.rows.path.truncate(length);
        result
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.rows.push(Some(f64::from(u8::from(value))), None);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.rows.push(Some(value as f64), None);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.rows.push(Some(value as f64), None);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.rows.push(Some(value), None);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.rows.push(None, Some(value));
        Ok(())
    }

    /// Bytes are a list of numbers.
    fn visit_bytes<E: serde::de::Error>(mut self, value: &[u8]) -> Result<(), E> {
        for (place, byte) in value.iter().enumerate() {
            self.within(place, |inner| inner.visit_u64(u64::from(*byte)))?;
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        for place in 0.. {
            if self.within(place, |inner| list.next_element_seed(inner))?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = map.next_key()? {
            self.within(key, |inner| map.next_value_seed(inner))?;
        }
        Ok(())
    }
}

/// The key of a map: the name of a field, or a number.
struct Key(String);

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsText;

        impl Visitor<'_> for AsText {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a number as a key")
            }

            fn visit_str<E>(self, value: &str) -> Result<Key, E> {
                Ok(Key(value.to_owned()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Key, E> {
                Ok(Key(value.to_string()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Key, E> {
                Ok(Key(value.to_string()))
            }
        }
        deserializer.deserialize_any(AsText)
    }
}

/// A store that remembers what was loaded from it, so that who makes a report has the results behind it too.
#[derive(Clone, Debug)]
pub struct Remembering {
    store: Arc<dyn ResultStore>,
    loaded: Arc<Mutex<JobResults>>,
}

impl Remembering {
    /// The same store.
    #[must_use]
    pub fn new(store: Arc<dyn ResultStore>) -> Self {
        Self { store, loaded: Arc::default() }
    }

    /// What was loaded since this was last asked for.
    #[must_use]
    pub fn loaded(&self) -> JobResults {
        std::mem::take(&mut self.loaded.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResultStore for Remembering {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let result = self.store.load(name)?;
        if let (Some(result), Ok(job)) = (&result, name.parse()) {
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.0.insert(job, result.clone());
        }
        Ok(result)
    }

    fn save(&self, name: &str, result: &[u8]) -> io::Result<()> {
        self.store.save(name, result)
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;
    use crate::results::ResultFolder;

    #[derive(Serialize)]
    enum Kind {
        Plain,
        With(u8),
    }

    #[derive(Serialize)]
    struct Outcome {
        name: &'static str,
        times: Vec<f64>,
        arms: Vec<BTreeMap<u8, i64>>,
        nothing: Option<u8>,
        holds: bool,
        kinds: [Kind; 2],
    }

    fn results(results: impl IntoIterator<Item = (usize, Vec<u8>)>) -> JobResults {
        let named = results.into_iter().map(|(place, bytes)| (JobId { round: 0, place }, bytes));
        JobResults(named.collect())
    }

    fn rows(results: &JobResults) -> Vec<String> {
        let columns = results.long().unwrap().0;
        let [Cells::Texts(jobs), Cells::Texts(paths), Cells::Numbers(numbers), Cells::Texts(texts)] =
            [0, 1, 2, 3].map(|index: usize| columns[index].cells.clone())
        else {
            panic!("{columns:?}");
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let row = |n: usize| match (numbers[n], &texts[n]) {
            (Some(number), None) => format!("{} {} {number}", text(&jobs[n]), text(&paths[n])),
            (None, Some(value)) => format!("{} {} '{value}'", text(&jobs[n]), text(&paths[n])),
            other => panic!("{other:?}"),
        };
        (0..numbers.len()).map(row).collect()
    }

    #[test]
    fn every_number_and_text_has_a_row() {
        let outcome = Outcome {
            name: "a",
            times: vec![0.5, f64::INFINITY],
            arms: vec![BTreeMap::from([(7, -1), (9, 2)])],
            nothing: None,
            holds: true,
            kinds: [Kind::Plain, Kind::With(3)],
        };
        let outcome = rmp_serde::to_vec_named(&outcome).unwrap();
        let bare = rmp_serde::to_vec_named(&1.5).unwrap();
        let expected = [
            "0-2 name 'a'",
            "0-2 times.0 0.5",
            "0-2 times.1 inf",
            "0-2 arms.0.7 -1",
            "0-2 arms.0.9 2",
            "0-2 holds 1",
            "0-2 kinds.0 'Plain'",
            "0-2 kinds.1.With 3",
            "0-10  1.5",
        ];
        assert_eq!(rows(&results([(10, bare), (2, outcome)])), expected);
    }

    #[test]
    fn what_is_no_result_is_told_of() {
        let nested = |depth: usize| {
            let mut bytes = vec![0x91; depth];
            bytes.push(1);
            results([(3, bytes)]).long().map(|columns| columns.rows())
        };
        assert_eq!(nested(MAX_DEPTH).unwrap(), 1);
        let error = nested(MAX_DEPTH + 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the result of job 0-3: values are too deep within each other"
        );
        for wrong in [vec![], vec![0xc1], vec![1, 2], vec![0x92, 1], vec![0xdd, 255, 255, 255, 255]]
        {
            assert!(results([(0, wrong.clone())]).long().is_err(), "{wrong:?}");
        }
        assert!(nested(1_000_000).is_err());
    }

    #[test]
    fn results_are_there_as_they_are() {
        let columns = results([(1, vec![1]), (0, vec![2, 3])]).raw();
        let jobs = Cells::Texts(["0-0", "0-1"].map(|job| Some(job.to_owned())).into());
        let bytes = Cells::Bytes([vec![2, 3], vec![1]].map(Some).into());
        assert!(columns.all().iter().map(|column| &column.cells).eq([&jobs, &bytes]));
        assert_eq!(columns.rows(), 2);
    }

    #[test]
    fn what_was_loaded_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let inner = Arc::new(ResultFolder::new(folder.path(), "").unwrap());
        inner.save("1-0", &[7]).unwrap();
        let store = Remembering::new(inner);
        assert_eq!(store.load("0-0").unwrap(), None);
        assert_eq!(store.load("1-0").unwrap(), Some(vec![7]));
        let job = JobId { round: 1, place: 0 };
        assert_eq!(store.clone().loaded().0, BTreeMap::from([(job, vec![7])]));
        assert!(store.loaded().0.is_empty());
    }
}
