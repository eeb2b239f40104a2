//! Recognizes the members of a patch that are directives and not content.

pub(super) const DIRECTIVE: &str = "$patch";
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
pub(super) const ELEMENT_ORDER: &str = "$setElementOrder/";
pub(super) const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Returns whether a member of this name is a directive and not content.
pub(super) fn is_directive(key: &str) -> bool {
    key.starts_with('$')
        && (key == DIRECTIVE || key == RETAIN_KEYS || key.starts_with(ELEMENT_ORDER) || key.starts_with(DELETE_FROM))
}
