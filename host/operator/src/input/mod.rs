//! Reads objects from the arguments of `-f` into one flat list, with the position of each object.
//!
//! The module `schema` checks these objects against the schemas of their kinds.

mod documents;
mod error;
mod files;
mod identity;
mod json;
mod origin;

pub use documents::parse;
pub use error::InputError;
pub use files::{InputPaths, document, read};
pub use identity::Identity;
pub use origin::{Document, DocumentOrigin};
