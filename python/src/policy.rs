//! Redundancy policies that are written in Python, for the simulator.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use sutura_proto::policy::{
    Arrival, Decision, Redundancy, RedundancyFactory, RepairPlan, View as Seen,
};

/// The first exception that a policy raised, which ends the experiment once its job is done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A class of policies. Each coding session gets an instance.
#[derive(Debug)]
pub(crate) struct PolicyClass {
    name: String,
    class: Py<PyType>,
    raised: Raised,
}

impl PolicyClass {
    /// The policies of this class, under its attribute `name`.
    pub(crate) fn of(class: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Self> {
        let class = class.cast::<PyType>().map_err(|_| {
            PyTypeError::new_err("a policy is a class, whose instances serve a session each")
        })?;
        let name: String = class.getattr("name")?.extract()?;
        if name.is_empty() || name.contains([':', ',', ' ']) {
            return Err(PyValueError::new_err(format!("`{name}` is not a name of a policy")));
        }
        Ok(Self { name, class: class.clone().unbind(), raised: raised.clone() })
    }

    /// A policy for a session.
    fn session(&self, py: Python<'_>) -> PyResult<Session> {
        let class = self.class.bind(py);
        let base = py.import("sutura.policy")?.getattr("Redundancy")?;
        Ok(Session {
            policy: Some(class.call0()?.unbind()),
            mends: class.getattr("mends")?.is_truthy()?,
            protects_all: class.getattr("protects")?.is(&base.getattr("protects")?),
            ..Session::without_policy(self.raised.clone())
        })
    }
}

impl RedundancyFactory for PolicyClass {
    fn name(&self) -> &str {
        &self.name
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn build(&self) -> Box<dyn Redundancy> {
        let made = Python::attach(|py| self.session(py));
        let session = made.map_err(|error| self.raised.keep(error)).ok();
        Box::new(session.unwrap_or_else(|| Session::without_policy(self.raised.clone())))
    }
}

/// The policy of a session; `None` if its class could not be called.
#[derive(Debug)]
struct Session {
    policy: Option<Py<PyAny>>,
    mends: bool,
    /// Whether the class has no method of its own that says what it protects.
    protects_all: bool,
    /// When the policy was first asked or told something.
    began: OnceCell<Instant>,
    raised: Raised,
}

impl Session {
    /// A session in which no repair symbol is sent.
    const fn without_policy(raised: Raised) -> Self {
        Self { policy: None, mends: false, protects_all: true, began: OnceCell::new(), raised }
    }

    fn seconds(&self, now: Instant) -> f64 {
        now.saturating_duration_since(*self.began.get_or_init(|| now)).as_secs_f64()
    }

    /// Calls the policy. An exception is kept, and counts as no answer.
    fn call<R: Default>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> R {
        let Some(policy) = &self.policy else { return R::default() };
        let answer = Python::attach(|py| call(policy.bind(py)));
        answer.unwrap_or_else(|error| {
            self.raised.keep(error);
            R::default()
        })
    }

    /// Tells the policy something of a symbol.
    fn tell(&self, method: &str, now: Instant, symbol: u64, seen: &Seen) {
        let at = self.seconds(now);
        self.call(|policy| {
            policy.call_method1(method, (at, symbol, View::of(now, seen)))?;
            Ok(())
        });
    }
}

impl Redundancy for Session {
    fn on_source_sent(&mut self, now: Instant, id: u64, view: &Seen) {
        self.tell("on_source_sent", now, id, view);
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &Seen) {
        let at = self.seconds(now);
        self.call(|policy| {
            policy.call_method1("on_flushed", (at, ended, View::of(now, view)))?;
            Ok(())
        });
    }

    fn on_repair_sent(&mut self, now: Instant, view: &Seen) {
        let at = self.seconds(now);
        self.call(|policy| {
            policy.call_method1("on_repair_sent", (at, View::of(now, view)))?;
            Ok(())
        });
    }

    fn on_lost(&mut self, now: Instant, id: u64, view: &Seen) {
        self.tell("on_lost", now, id, view);
    }

    fn on_arrived(&mut self, now: Instant, id: u64, _how: Arrival, view: &Seen) {
        self.tell("on_arrived", now, id, view);
    }

    fn mends(&self) -> bool {
        self.mends
    }

    fn protects(&self, view: &Seen) -> bool {
        let ask = |policy: &Bound<'_, PyAny>| {
            policy.call_method1("protects", (View::timeless(view),))?.is_truthy()
        };
        self.protects_all || self.call(ask)
    }

    fn protects_all(&self) -> bool {
        self.protects_all
    }

    fn timeout(&self) -> Option<Instant> {
        let began = self.began.get()?;
        self.call(|policy| {
            let at: Option<f64> = policy.call_method0("timeout")?.extract()?;
            let wrong = |error| PyValueError::new_err(format!("timeout: {error}"));
            let after = at.map(|at| Duration::try_from_secs_f64(at).map_err(wrong)).transpose()?;
            Ok(after.and_then(|after| began.checked_add(after)))
        })
    }

    fn decide(&self, now: Instant, view: &Seen) -> Decision {
        let at = self.seconds(now);
        let span = self.call(|policy| {
            let answer = policy.call_method1("decide", (at, View::of(now, view)))?;
            if let Ok((first, next)) = answer.extract::<(u64, u64)>() {
                return Ok(Some(first..next));
            }
            Ok(answer.is_truthy()?.then(|| view.span()))
        });
        match span {
            Some(span) if !span.is_empty() => Decision::Repair(RepairPlan::over(span)),
            _ => Decision::Source,
        }
    }
}

/// What a policy knows of its session and of the path when it is asked or told something. Times are in seconds.
#[pyclass(frozen, get_all, module = "sutura._native")]
pub(crate) struct View {
    /// The coding window: its first symbol, the first that may still be in time, and the next.
    first: u64,
    timely: u64,
    next: u64,
    /// Symbols that are not known to have arrived, that were lost and have no repair symbol, repair symbols in
    /// flight, and symbols that no repair symbol covers.
    unacked: u32,
    missing: u32,
    added: u32,
    unprotected: u32,
    /// The time to the earliest deadline of the latter.
    deadline: Option<f64>,
    /// Bytes that were written and not sent, and whether there is something to send.
    left: u64,
    has_source: bool,
    idle: bool,
    /// The path.
    rtt: f64,
    min_rtt: f64,
    loss: f64,
    burst: f64,
    window: u64,
    in_flight: u64,
}

impl View {
    fn of(now: Instant, seen: &Seen) -> Self {
        let until = |at: Instant| at.saturating_duration_since(now).as_secs_f64();
        Self { deadline: seen.deadline.map(until), ..Self::timeless(seen) }
    }

    /// The same without the deadline, for questions that come without the time.
    fn timeless(seen: &Seen) -> Self {
        Self {
            first: seen.first,
            timely: seen.timely,
            next: seen.next,
            unacked: seen.unacked,
            missing: seen.missing,
            added: seen.added,
            unprotected: seen.unprotected,
            deadline: None,
            left: seen.left,
            has_source: seen.has_source,
            idle: seen.idle,
            rtt: seen.path.rtt.as_secs_f64(),
            min_rtt: seen.path.min_rtt.as_secs_f64(),
            loss: seen.path.loss,
            burst: seen.path.burst,
            window: seen.path.window,
            in_flight: seen.path.in_flight,
        }
    }
}
