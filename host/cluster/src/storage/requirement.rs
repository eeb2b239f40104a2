//! One requirement of a label selector.

/// A requirement for one label.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Requirement {
    pub(super) key: String,
    pub(super) operator: Operator,
    pub(super) values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Operator {
    In,
    NotIn,
    Exists,
    Absent,
    Greater,
    Less,
}
