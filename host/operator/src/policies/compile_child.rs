//! The name of the command that runs as a compile child.

/// The command of `kaos-operator` that compiles a component in a child process.
pub(crate) const COMPILE_CHILD: &str = "compile-child";
