//! What is known about the shape of objects, in one form for built-in kinds and for custom resources.
//!
//! [`node`] reads OpenAPI into a tree; everything that depends on the shape of an object walks that tree: pruning,
//! defaulting and validation here, server-side apply and strategic merge in [`crate::apply`]. CEL rules are left to
//! `kube-cel`, once [`cost`] has said that they are affordable.

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
