//! The current path of a merge. Building the path allocates memory, so the merge builds it only for an error.

use crate::Path;

/// One step of the path, with a reference to the steps above it.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    step: Step<'a>,
    above: Option<&'a Here<'a>>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Here<'a> {
    /// The root of the patch.
    pub(super) const ROOT: Here<'static> = Here { step: Step::Root, above: None };

    /// Returns the path of the member `name`.
    pub(super) fn key(&'a self, name: &'a str) -> Self {
        Self { step: Step::Key(name), above: Some(self) }
    }

    /// Returns the path of the item at `index`.
    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { step: Step::Index(index), above: Some(self) }
    }

    /// Returns the complete path.
    #[inline(never)]
    pub(super) fn path(&self) -> Path {
        let above = self.above.map(Self::path).unwrap_or_default();
        match self.step {
            Step::Root => above,
            Step::Key(name) => above.key(name),
            Step::Index(index) => above.index(index),
        }
    }
}
