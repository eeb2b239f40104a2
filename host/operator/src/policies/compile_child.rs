//! The name of the verb that runs as a compile child.

/// The verb of the command line that compiles a component in a child process.
pub(crate) const COMPILE_CHILD: &str = "compile-child";
