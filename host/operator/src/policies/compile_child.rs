//! The process that compiles components.

/// The verb of the command line that runs a compile child.
pub(crate) const COMPILE_CHILD: &str = "compile-child";
