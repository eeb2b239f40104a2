//! Loads, checks, limits and runs policies. Knows Kubernetes objects as JSON and no Kubernetes client.
//!
//! | module | what it has |
//! |---|---|
//! | [`contract`] | the records of `wit/policy.wit`, as the host sees them |
//! | [`code`] | code that answers the contract, whatever it was compiled to |
//! | [`engine`] | the sandbox: components as code |
//! | [`compile`], [`cache`] | compiling in a process of its own, and keeping what came of it |
//! | [`gate`] | every step from bytes to a policy |
//! | [`manifest`] | `policy.yaml`: scope, limits, grants |
//! | [`policy`] | a policy that was let in, and stacks of them |
//! | [`settings`] | layers, schema, provenance |
//! | [`lookup`] | how a pass sees the cluster |
//! | [`render`] | the pass: from an object to its manifests, and from what is there to its status |
//! | [`guard`] | the output firewall |
//! | [`kubernetes`] | what an API server would refuse of a manifest, without one |
//! | [`stamp`] | what the host writes into every manifest |
//! | [`memo`] | answers that are still good |
//! | [`limits`], [`failure`] | what a pass may cost, and how it can fail |
//! | [`names`] | what Kubernetes takes for a name |
//! | [`near`] | the name that was probably meant |
//! | [`mod@cut`], [`mod@printable`] | long texts in messages, and texts that would steer a terminal |
//! | [`yaml`], [`objections`] | what is wrong with a YAML text, and with a value by its JSON Schema |
//! | [`digest`] | digests and canonical JSON |

mod adapter;
pub mod cache;
pub mod clock;
pub mod code;
pub mod compile;
pub mod contract;
pub mod cut;
pub mod describe;
pub mod digest;
pub mod engine;
pub mod failure;
pub mod gate;
pub mod guard;
mod json;
pub mod kubernetes;
pub mod limits;
pub mod lookup;
pub mod manifest;
pub mod memo;
pub mod names;
pub mod near;
pub mod objections;
mod pods;
pub mod policy;
pub mod printable;
pub mod render;
pub mod settings;
pub mod stamp;
mod units;
pub mod yaml;
