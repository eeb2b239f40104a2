//! Decides which scope and which grants a package can have. In the operator's namespace, a package can have any scope
//! and any grants. In any other namespace, a package can serve only that namespace, and has no grants.

use kaos_policy::manifest::{Grants, PolicyFile};

use super::Reach;

/// The status reason of a package that the operator refuses because of its grants.
pub(super) const NOT_GRANTED: &str = "GrantsNotAllowed";

/// The error for a package that asks for more than its namespace allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Overreach {
    /// The reason that the status of the revision shows, in one word.
    pub(crate) reason: &'static str,
    /// The request of the package, and the reason why the request is not allowed.
    pub(crate) message: String,
}

/// Returns the scope of a package in `namespace`. `home` is the operator's namespace.
pub(crate) fn reach(file: &PolicyFile, namespace: &str, home: &str) -> Result<Reach, Overreach> {
    let listed = &file.scope.namespaces;
    let reach = Reach::of_package(namespace, listed, home);
    if !matches!(reach, Reach::Own(_)) {
        return Ok(reach);
    }
    if listed.iter().any(|listed| listed != namespace) {
        let message = format!("scope.namespaces: a policy in namespace {namespace} can apply only in this namespace");
        return Err(Overreach { reason: "ScopeTooWide", message });
    }
    if file.grants != Grants::default() {
        let message = "grants: only policies in the operator's own namespace can have grants".to_owned();
        return Err(Overreach { reason: NOT_GRANTED, message });
    }
    Ok(reach)
}
