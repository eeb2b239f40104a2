//! Counts an operator's requests to the API server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::jiff::Timestamp;
use kaos_tests::control_plane::audit::{Request, Tail};
use serde_json::{Value, json};

/// The category of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A read or a renewal of a Lease.
    Lease,
    /// A watch that ended.
    Watch,
    /// A write of an Event.
    Event,
    /// Any other write.
    Write,
    /// Any other request, such as a read, a review or a dry run.
    Read,
}

impl Sort {
    pub(crate) fn of(request: &Request) -> Self {
        match request.resource.as_str() {
            "leases" => Self::Lease,
            _ if request.verb == "watch" => Self::Watch,
            "events" if request.writes() => Self::Event,
            resource if request.writes() && !request.dry_run && !resource.ends_with("reviews") => Self::Write,
            _ => Self::Read,
        }
    }
}

/// A list of requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Vec<Request>);

impl Calls {
    /// Returns the number of requests in a category.
    pub(crate) fn count(&self, sort: Sort) -> usize {
        self.0.iter().filter(|request| Sort::of(request) == sort).count()
    }

    /// Returns the number of writes to the resource `resource`, such as `agents/status`.
    pub(crate) fn writes_of(&self, resource: &str) -> usize {
        let of = |request: &&Request| request.resource == resource && Sort::of(request) == Sort::Write;
        self.0.iter().filter(of).count()
    }

    /// Returns the number of status writes.
    pub(crate) fn statuses(&self) -> usize {
        let of = |request: &&Request| request.resource.ends_with("/status") && Sort::of(request) == Sort::Write;
        self.0.iter().filter(of).count()
    }

    /// Returns the number of created objects of a type.
    pub(crate) fn made_of(&self, resource: &str) -> usize {
        self.0.iter().filter(|request| request.made() && request.resource == resource).count()
    }

    /// Returns the time at which the API server answered the last creation of an object, in seconds. `None` without a
    /// creation.
    pub(crate) fn last_made(&self) -> Result<Option<f64>> {
        let made = |request: &&Request| request.made() && Sort::of(request) == Sort::Write;
        self.0.iter().filter(made).map(|request| seconds(&request.answered)).next_back().transpose()
    }

    /// Returns the time at which the API server answered the last write, in seconds. Ignores Events. `None` without a
    /// write.
    pub(crate) fn last_write(&self) -> Result<Option<f64>> {
        let mut writes = self.0.iter().filter(|request| Sort::of(request) == Sort::Write);
        writes.next_back().map(|request| seconds(&request.answered)).transpose()
    }

    /// Returns the time at which the API server answered the last request, in seconds. Ignores requests for Leases and
    /// watches, because an idle operator also sends them. `None` without a request.
    pub(crate) fn last(&self) -> Result<Option<f64>> {
        let mut calls = self.0.iter().filter(|request| is_work(request));
        calls.next_back().map(|request| seconds(&request.answered)).transpose()
    }

    /// Returns the number of requests for each verb and type.
    pub(crate) fn by_verb(&self) -> Value {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for request in &self.0 {
            let dry = if request.dry_run { " (dry run)" } else { "" };
            let failed = if request.code >= 400 { format!(" ({})", request.code) } else { String::new() };
            *counts.entry(format!("{} {}{dry}{failed}", request.verb, request.resource)).or_default() += 1;
        }
        json!(counts)
    }

    /// Adds the requests since the last call. Returns true if the new requests contain work. Watches and Lease requests
    /// are not work.
    pub(crate) fn hear(&mut self, tail: &mut Tail) -> Result<bool> {
        let heard = tail.read()?;
        let worked = heard.iter().any(is_work);
        self.0.extend(heard);
        Ok(worked)
    }

    /// Reads requests until `enough` returns true and the operator is idle. An operator is idle when it has sent only
    /// watches and Lease requests for the time `still`.
    pub(crate) async fn until_still(
        &mut self,
        tail: &mut Tail,
        (still, patience): (Duration, Duration),
        mut enough: impl FnMut(&Self) -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            if self.hear(tail)? {
                last = Instant::now();
            }
            if enough(self)? && last.elapsed() > still {
                return Ok(());
            }
            anyhow::ensure!(
                Instant::now() < deadline,
                "the operator is still working after {} s: {}",
                patience.as_secs(),
                self.by_verb()
            );
        }
    }
}

fn is_work(request: &Request) -> bool {
    !matches!(Sort::of(request), Sort::Lease | Sort::Watch)
}

/// Converts a time of the audit log to seconds since 1970.
fn seconds(time: &str) -> Result<f64> {
    let time: Timestamp = time.parse().with_context(|| format!("{time} in the audit log"))?;
    Ok(time.as_duration().as_secs_f64())
}

/// Returns the current time in seconds since 1970.
pub(crate) fn now() -> f64 {
    Timestamp::now().as_duration().as_secs_f64()
}
