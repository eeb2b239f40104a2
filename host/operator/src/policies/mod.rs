//! Which policies answer offline: the embedded ones, and over them those that the user names.

mod candidate;
mod error;
mod load;
mod origin;
mod select;

pub use candidate::Candidate;
pub use error::PolicyError;
pub use load::{Loaded, Loader, sample_cluster};
pub use origin::Origin;
pub use select::select;

/// The verb of the process in which components are compiled.
pub(crate) const COMPILE_CHILD: &str = "compile-child";
