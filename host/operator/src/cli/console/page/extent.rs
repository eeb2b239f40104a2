//! How much of a page to build.

/// How much of a page to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli::console) enum Extent {
    /// The whole page.
    Whole,
    /// Only the parts that change while the page is open.
    Parts,
}
