//! Schemas of objects. Schemas of built-in kinds and of custom resources become the same tree.
//!
//! [`node`] reads OpenAPI into a tree. All code that depends on the shape of objects walks this tree: pruning,
//! defaulting and validation in this module, and server-side apply and strategic merge in [`crate::apply`]. `kube-cel`
//! evaluates CEL rules if their [`cost`] is within the limits.

mod cost;
pub(crate) mod defaults;
pub(crate) mod definitions;
mod format;
mod limits;
pub(crate) mod node;
pub(crate) mod pattern;
pub(crate) mod prune;
pub(crate) mod rules;
pub(crate) mod validate;

pub(crate) use node::{Fields, Items, List, Node, Scalar, Shape, Strategy};
