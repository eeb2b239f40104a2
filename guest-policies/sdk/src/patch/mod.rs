//! Applies strategic merge patches to JSON, with the merge keys of pod specs, Deployments and Services.
//!
//! [`merge`] follows Go's `strategicpatch`, including the order of lists. [`pod_spec`] and [`container`] add three
//! rules for policies:
//!
//! - a member of the patch removes the members of the base that it excludes;
//! - the merge refuses a patch with two members that exclude each other;
//! - in a pod spec, the policy's own container stays first unless the patch names it.
//!
//! The merge deviates from Go where Go's result is useless:
//!
//! - the result never contains a directive or a null;
//! - if the base has no value, a patch with `$patch: replace` or `$patch: merge` creates the value;
//! - the merge refuses a `$deleteFromPrimitiveList` that is not a list, an item with a null merge key, and an unknown
//!   `$patch`, also where the base has no value;
//! - a field that the tables do not contain merges like a plain map, and a list in this field replaces the base's list
//!   (Go fails on the field);
//! - ports merge by number and protocol, as in server-side apply, so that 53/UDP and 53/TCP both stay.
//!
//! `tests/data/strategic-merge.json` contains Go's result for each kind of patch, and lists every deviation.

#![allow(clippy::similar_names, reason = "a patch has a path, and both words are better than any other")]

mod check;
mod clean;
mod directive;
mod error;
mod here;
mod list;
mod map;
mod options;
mod order;
mod table;

pub use error::{Error, Problem};

use here::Here;
use options::Options;
use serde_json::Value;
use table::Type;

/// The type of the patched value. The type determines the merge key of each list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// `PodSpec`.
    PodSpec,
    /// `Container`.
    Container,
    /// `Deployment`.
    Deployment,
    /// `Service`.
    Service,
    /// An object in which the patch replaces each list.
    Plain,
}

impl Schema {
    fn root(self) -> &'static Type {
        match self {
            Self::PodSpec => &table::POD_SPEC,
            Self::Container => &table::CONTAINER,
            Self::Deployment => &table::DEPLOYMENT,
            Self::Service => &table::SERVICE,
            Self::Plain => &table::PLAIN,
        }
    }
}

/// Merges `patch` into `base` like Go.
pub fn merge(base: Value, patch: &Value, schema: Schema) -> Result<Value, Error> {
    run(base, patch, schema, Options::default())
}

/// Merges the user's partial pod spec into the policy's pod spec. `own` is the name of the policy's container, which
/// stays first unless the patch names it.
pub fn pod_spec(base: Value, patch: &Value, own: &str) -> Result<Value, Error> {
    let mut merged = run(base, patch, Schema::PodSpec, Options { exclusive: true })?;
    if !names(patch, own)
        && let Some(containers) = merged.get_mut("containers").and_then(Value::as_array_mut)
        && let Some(at) = containers.iter().position(|container| is_named(container, own))
    {
        containers[..=at].rotate_right(1);
    }
    Ok(merged)
}

/// Merges the user's partial container into the policy's container.
pub fn container(base: Value, patch: &Value) -> Result<Value, Error> {
    run(base, patch, Schema::Container, Options { exclusive: true })
}

fn run(base: Value, patch: &Value, schema: Schema, options: Options) -> Result<Value, Error> {
    let Value::Object(patch) = patch else {
        return match patch {
            Value::Null => Ok(base),
            _ => Err(Error::new(Here::ROOT, Problem::NotAnObject)),
        };
    };
    let base = match base {
        Value::Object(map) => map,
        _ => serde_json::Map::new(),
    };
    let (of, path) = (schema.root(), Here::ROOT);
    check::object(patch, of, options, &path)?;
    map::merge(base, patch, of, options, &path).map(Value::Object)
}

/// Returns whether `patch` mentions the container `own`, either in `containers` or in the order of containers.
fn names(patch: &Value, own: &str) -> bool {
    ["containers", "$setElementOrder/containers"].iter().any(|list| {
        let items = patch.get(list).and_then(Value::as_array);
        items.is_some_and(|items| items.iter().any(|item| is_named(item, own)))
    })
}

fn is_named(container: &Value, name: &str) -> bool {
    container.get("name").and_then(Value::as_str) == Some(name)
}

#[cfg(test)]
mod tests;
