//! A checked revision that is to serve.

use std::sync::Arc;

use crate::{catalogue::installed::revision_set::AdmittedRevision, package::Package};

/// A checked revision that is to serve.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) entry: AdmittedRevision,
    pub(super) package: Arc<Package>,
    /// The serving revisions that the candidate replaces: those of its source, and the one in `succeeds`.
    pub(super) before: Vec<String>,
    /// The serving revision in the candidate's place whose source was deleted.
    pub(super) succeeds: Option<String>,
    /// The earlier entry of this revision among the admitted revisions. The operator restores this entry if the
    /// candidate cannot serve.
    pub(super) kept: Option<AdmittedRevision>,
}

impl Candidate {
    pub(super) fn new(name: &str, entry: AdmittedRevision, package: Arc<Package>) -> Self {
        Self { name: name.to_owned(), entry, package, before: Vec::new(), succeeds: None, kept: None }
    }
}
