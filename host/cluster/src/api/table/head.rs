//! The head of a column.

/// One column and its cells' meaning.
pub(super) struct Head {
    pub(super) name: String,
    pub(super) type_: String,
    pub(super) format: String,
    pub(super) description: String,
    pub(super) priority: i64,
}
