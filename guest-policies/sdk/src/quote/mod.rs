//! Quotes text so that a shell or a YAML parser reads the whole text as one value.

mod expansion;
mod shell;
mod yaml;

pub(crate) use expansion::references;
pub use expansion::unexpanded;
pub use kaos_decode::shown;
pub use shell::word as shell_word;
pub use yaml::scalar as yaml_scalar;
