//! A view of the cluster that answers one target at a time.

use std::sync::Arc;

use kaos_fields::Fields;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{resource_type::ResourceType, target::Target};

/// The maximum total size of the found objects that one policy sees in a pass, in bytes of JSON. If the found objects
/// are larger, the object of the pass waits until they are smaller.
pub const MAX_FOUND_BYTES: usize = 4 << 20;
/// The maximum total size of the objects that one pass reads to find fields for its policies, in bytes of JSON.
pub const MAX_READ: usize = 64 << 20;

/// Answers lookups from the state of a cluster, or from objects in files.
pub trait Lookup {
    /// Looks up a target. The target must have a namespace. The lookup ignores the namespace if the type is
    /// cluster-scoped. For a Secret, the answer is always a [`Sighting::Secret`]. An implementation can stop when the
    /// objects exceed [`MAX_FOUND_BYTES`] bytes in total, because the policy does not see objects beyond this limit.
    fn look_up(&self, target: &Target) -> Sighting;

    /// Looks up a target like [`look_up`](Self::look_up), but returns only `fields` of each object. `room` is the
    /// number of bytes that the pass can still read to find fields. If the lookup needs more bytes, the lookup sets
    /// `room` to 0.
    fn look_up_fields(&self, target: &Target, fields: &Fields, room: &mut usize) -> Sighting {
        let _ = room;
        match self.look_up(target) {
            Sighting::Objects(objects) if !fields.is_whole() => {
                Sighting::Objects(objects.iter().map(|object| Arc::new(fields.of(object))).collect())
            }
            sighting => sighting,
        }
    }

    /// Returns whether no object matches a target, for callers that do not need the objects. Returns false if the
    /// cluster does not serve the type, or if the operator is not allowed to read the target.
    fn is_absent(&self, target: &Target) -> bool {
        match self.look_up(target) {
            Sighting::Objects(objects) => objects.is_empty(),
            Sighting::Secret(facts) => !facts.present,
            Sighting::Unserved | Sighting::Forbidden(_) => false,
        }
    }

    /// Returns whether a type is cluster-scoped. A policy needs a grant to read cluster-scoped objects.
    fn is_cluster_scoped(&self, of: &ResourceType) -> bool;
}

/// The result of a lookup.
#[derive(Debug, Clone, PartialEq)]
pub enum Sighting {
    /// The found objects, complete or with the requested fields only; empty if no object matches the target.
    Objects(Vec<Arc<Value>>),
    /// The facts of a Secret.
    Secret(SecretFacts),
    /// The cluster does not serve this type now.
    Unserved,
    /// The operator is not allowed to read the target. The text gives the reason.
    Forbidden(String),
}

/// The facts about a Secret that a policy gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretFacts {
    /// Whether the Secret exists.
    pub present: bool,
    /// The Secret's keys, sorted.
    pub keys: Vec<String>,
    /// A digest of the content, keyed with a secret key of the operator.
    pub digest: String,
}
