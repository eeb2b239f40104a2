//! Column definitions.

/// The definition of one column.
pub(super) struct Head {
    pub(super) name: String,
    pub(super) type_: String,
    pub(super) format: String,
    pub(super) description: String,
    pub(super) priority: i64,
}
