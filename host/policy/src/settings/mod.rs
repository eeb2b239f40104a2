//! Effective settings of a policy: layers merged, defaults filled in, checked against the schema, and for
//! every value the layer that gave it.

mod assign;
mod bounds;
mod effective;
mod error;
mod layer;
mod listed;
mod merge;
mod origin;
mod path;
mod resolve;
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
pub use resolve::ANNOTATION_PREFIX;
pub use schema::Schema;
