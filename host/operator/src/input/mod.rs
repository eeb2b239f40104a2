//! Objects from files: what `-f` names, as one flat list that remembers where each object was written.
//!
//! Reads and flattens; what an object means, and whether its kind allows what it says, is for `schema`.

mod documents;
mod error;
mod files;
mod identity;
mod json;
mod origin;

pub use documents::parse;
pub use error::InputError;
pub use files::{Sources, document, read};
pub use identity::{Identity, is_cluster_scoped};
pub use origin::{Document, Origin};
