//! Strategic merge patch on JSON, with the merge keys of pod specs, Deployments and Services.
//!
//! [`merge`] follows Go's `strategicpatch`, list order included; [`pod_spec`] and [`container`] are what a
//! policy wants on top: a member takes the place of another that it excludes, two of them in one patch are
//! refused, and the policy's own container stays first where the patch only adds others.
//!
//! Five deviations from Go, each where Go's result is one that nobody wants:
//!
//! - no directive and no null is ever left in the result;
//! - `$patch: replace` or `merge` on something that is not there puts its content there;
//! - a `$patch` that is none is refused everywhere, and not only where there is something below it; so are a
//!   `$deleteFromPrimitiveList` that is no list, and an item whose merge key is null;
//! - fields that the tables do not know merge like plain maps, and their lists replace, instead of failing;
//! - ports merge by number and protocol, as in server-side apply, so that 53/UDP and 53/TCP are both kept.
//!
//! `tests/data/strategic-merge.json` has what Go makes of each kind of patch, and lists every deviation.

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

/// The type that is patched; it says which lists are merged by which key.
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
    /// No list is merged.
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

/// `base` with `patch` laid over it, by Go's rules.
pub fn merge(base: Value, patch: &Value, schema: Schema) -> Result<Value, Error> {
    run(base, patch, schema, Options::default())
}

/// The policy's pod spec with the user's partial one laid over it. `own` names the policy's container:
/// it stays first unless the patch says where it goes by naming it.
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

/// The policy's container with the user's partial one laid over it.
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

/// Whether `patch` says anything of the container `own`, or of the order of containers.
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
