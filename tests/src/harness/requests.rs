//! Reads the operator's requests from the journal of the embedded cluster.

use std::collections::BTreeMap;

use kaos_cluster::faults::{Entry, Verb};

use super::World;
use super::faults::is_operator;

/// The category of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// A watch.
    Watch,
    /// A request about a Lease, except a watch.
    Lease,
    /// A write of an Event.
    Event,
    /// A write that the API server accepted, except writes of Leases and Events.
    Write,
    /// A write that the API server rejected, except writes of Leases and Events.
    Refused,
    /// A dry run.
    DryRun,
    /// A read that shows which types the API server serves, or their schemas.
    Discovery,
    /// A read of objects, or an access review.
    Read,
}

impl Sort {
    /// Returns the category of a request in the journal.
    pub fn of(entry: &Entry) -> Self {
        let attempt = &entry.attempt;
        match attempt.verb {
            Verb::Watch => Self::Watch,
            _ if attempt.resource == "leases" => Self::Lease,
            verb if verb.is_write() && attempt.resource == "events" => Self::Event,
            verb if !verb.is_write() && attempt.resource.is_empty() => Self::Discovery,
            verb if !verb.is_write() && attempt.resource == "customresourcedefinitions" => Self::Discovery,
            verb if !verb.is_write() => Self::Read,
            _ if attempt.group == "authorization.k8s.io" => Self::Read,
            _ if attempt.dry_run => Self::DryRun,
            _ if (200..300).contains(&entry.code) => Self::Write,
            _ => Self::Refused,
        }
    }
}

impl World {
    /// Clears the journal.
    pub fn forget_requests(&self) {
        self.embedded().journal().clear();
    }

    /// Returns the operator's requests of this category since the journal was cleared.
    pub fn requests(&self, sort: Sort) -> Vec<Entry> {
        let entries = self.embedded().journal().entries();
        entries.into_iter().filter(|entry| is_operator(&entry.attempt.user) && Sort::of(entry) == sort).collect()
    }

    /// Returns the operator's accepted writes since the journal was cleared, as texts. Leaves out Events and Leases.
    pub fn writes(&self) -> Vec<String> {
        self.requests(Sort::Write).iter().map(ToString::to_string).collect()
    }

    /// Returns the operator's reads since the journal was cleared, as texts. Leaves out watches.
    pub fn reads(&self) -> Vec<String> {
        self.requests(Sort::Read).iter().map(ToString::to_string).collect()
    }

    /// Returns the number of writes for each type, such as `deployments` or `agents/status`, since the journal was
    /// cleared.
    pub fn writes_by_type(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.requests(Sort::Write) {
            let slash = if entry.attempt.subresource.is_empty() { "" } else { "/" };
            let of = format!("{}{slash}{}", entry.attempt.resource, entry.attempt.subresource);
            *counts.entry(of).or_default() += 1;
        }
        counts
    }
}
