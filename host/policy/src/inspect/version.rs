//! The versions of the contract that this host serves, and the custom section with a component's version.
//!
//! A version with a pre-release part, such as `0.2.0-draft.1`, is a draft: it may change without notice. So a host
//! serves a draft only if the host was built with exactly this draft. A released host is built without drafts.

/// The released version that this host serves. A policy may use a version of the contract that differs only in the last
/// number.
pub(super) const HOST: &str = "0.1";
/// The custom section in which a policy stores the contract's version.
pub(super) const SECTION: &str = "kaos:policy";

/// Returns the part of a version that must be equal for the policy and the host. For a released version, this part is
/// the first two numbers; for a draft, the whole version.
pub(super) fn line(version: &str) -> &str {
    if is_draft(version) {
        return version;
    }
    version.rsplit_once('.').map_or(version, |(line, _)| line)
}

/// Returns whether a version is a draft.
pub(super) fn is_draft(version: &str) -> bool {
    version.contains('-')
}
