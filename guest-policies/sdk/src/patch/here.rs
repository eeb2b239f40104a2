//! Where a merge is: a path that costs nothing until something is wrong there.

use crate::Path;

/// A place below another.
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

    /// The member `name`.
    pub(super) fn key(&'a self, name: &'a str) -> Self {
        Self { step: Step::Key(name), above: Some(self) }
    }

    /// The item number `index`.
    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { step: Step::Index(index), above: Some(self) }
    }

    /// All of it.
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
