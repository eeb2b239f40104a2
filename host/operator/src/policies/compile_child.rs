//! The process that compiles components.

/// The verb of the process in which components are compiled.
pub(crate) const COMPILE_CHILD: &str = "compile-child";
