//! What the operator asked of the API server, as the embedded cluster's journal has it.

use std::collections::BTreeMap;

use kaos_cluster::faults::{Entry, Verb};

use super::World;
use super::faults::is_operator;

/// How a request counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// Follows changes.
    Watch,
    /// Renews or looks at a Lease.
    Lease,
    /// Tells an Event.
    Event,
    /// Any other write that was accepted, dry runs apart.
    Write,
    /// Any other write that was refused.
    Refused,
    /// A dry run.
    DryRun,
    /// Asks what is served, and how it looks.
    Discovery,
    /// Any other read.
    Read,
}

impl Sort {
    /// How an entry counts.
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
    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.embedded().journal().clear();
    }

    /// The operator's requests since, of this sort.
    pub fn requests(&self, sort: Sort) -> Vec<Entry> {
        let entries = self.embedded().journal().entries();
        entries.into_iter().filter(|entry| is_operator(&entry.attempt.user) && Sort::of(entry) == sort).collect()
    }

    /// The operator's accepted writes since, Events and Leases apart, as texts.
    pub fn writes(&self) -> Vec<String> {
        self.requests(Sort::Write).iter().map(ToString::to_string).collect()
    }

    /// The operator's reads since, watches apart, as texts.
    pub fn reads(&self) -> Vec<String> {
        self.requests(Sort::Read).iter().map(ToString::to_string).collect()
    }

    /// How often each object was written since: `deployments`, `agents/status`.
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
