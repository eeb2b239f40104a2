//! Types and names for Kubernetes objects that all crates of the host share. Objects are JSON here.
//!
//! | module | contents |
//! |---|---|
//! | [`resource_type`], [`target`] | a kind in its API version; an object by name, objects by labels, and the fields that a policy reads |
//! | [`lookup`] | a view of the cluster, one target at a time |
//! | [`metadata`] | reads an object's metadata, and names the labels and annotations that the host reads |
//! | [`names`] | Kubernetes' rules for names |
//! | [`digest`] | digests and canonical JSON |

pub mod digest;
pub mod lookup;
pub mod metadata;
pub mod names;
pub mod resource_type;
pub mod target;

pub use kaos_fields::{Fields, Scopes};
pub use lookup::{Lookup, SecretFacts, Sighting};
pub use resource_type::ResourceType;
pub use target::{Followed, Reference, Selector, Target};
