//! Resolves a policy's effective settings. Merges the layers, adds defaults, checks the result against the schema, and
//! records the source of every value.

mod assign;
mod bounds;
mod effective;
mod error;
mod layer;
mod listed;
mod merge;
mod origin;
mod path;
mod patterns;
mod recorded;
mod resolve;
mod resolved;
mod schema;
mod text;
mod validate;
mod work;

pub use assign::{assignments, file};
pub use effective::Effective;
pub use error::{SchemaError, SettingsError, SettingsErrors};
pub use layer::{Content, Layer};
pub(crate) use listed::listed;
pub use origin::{Origin, Source};
pub use path::Path;
pub use recorded::RecordedSettings;
pub use resolve::ANNOTATION_PREFIX;
pub(crate) use resolved::Resolved;
pub use schema::Schema;
