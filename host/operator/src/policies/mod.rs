//! Loads and selects the policies that do not come from a cluster: the embedded policies, and the policies in files
//! that the user names. The user's policies take precedence.

mod candidate;
mod compile_child;
mod error;
mod load;
mod origin;
mod packages;
mod select;

pub use candidate::Candidate;
pub(crate) use candidate::is_script;
pub(crate) use compile_child::COMPILE_CHILD;
pub use error::PolicyError;
pub use load::{Loaded, Loader, sample_cluster};
pub use origin::ComponentOrigin;
pub use packages::packages;
pub use select::select;
