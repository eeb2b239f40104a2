//! What a package may ask for: in the operator's namespace whatever it likes, in any other to hold there, and nothing else.

use kaos_policy::manifest::{Grants, PolicyFile};

use super::Reach;

/// Why a package is refused that is to be granted more than it may have.
pub(super) const NOT_GRANTED: &str = "GrantsNotAllowed";

/// What a package asks for and may not have where it lies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Overreach {
    /// One word for it.
    pub(crate) reason: &'static str,
    /// What, and why not.
    pub(crate) message: String,
}

/// Where a package holds that lies in `namespace`; the operator's namespace is `home`.
pub(crate) fn reach(file: &PolicyFile, namespace: &str, home: &str) -> Result<Reach, Overreach> {
    let listed = &file.scope.namespaces;
    let reach = Reach::of_package(namespace, listed, home);
    if !matches!(reach, Reach::Own(_)) {
        return Ok(reach);
    }
    if listed.iter().any(|listed| listed != namespace) {
        let message = format!("scope.namespaces: a policy in {namespace} can hold in {namespace} only");
        return Err(Overreach { reason: "ScopeTooWide", message });
    }
    if file.grants != Grants::default() {
        let message = "grants: only policies in the operator's own namespace are granted anything".to_owned();
        return Err(Overreach { reason: NOT_GRANTED, message });
    }
    Ok(reach)
}
