//! Schemas of objects. The schemas of built-in kinds and of custom resources become trees of the same type.
//!
//! [`node`] reads OpenAPI into a tree. All code that depends on the shape of objects uses this tree. Pruning,
//! defaulting and validation are in this module. Server-side apply and strategic merge are in [`crate::apply`].
//! `kube-cel` evaluates CEL rules if their [`cost`] is within the limits.

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
