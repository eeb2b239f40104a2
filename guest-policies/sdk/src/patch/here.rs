//! The current path of a merge. It allocates only when an error needs the path.

use crate::Path;

/// A step below another one.
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

    /// Steps into the member `name`.
    pub(super) fn key(&'a self, name: &'a str) -> Self {
        Self { step: Step::Key(name), above: Some(self) }
    }

    /// Steps into the item number `index`.
    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { step: Step::Index(index), above: Some(self) }
    }

    /// Returns the whole path.
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
