//! Loads, checks, limits and runs policies. This crate treats Kubernetes objects as JSON and uses no Kubernetes client.
//!
//! | module | contents |
//! |---|---|
//! | [`contract`] | the records of `wit/policy.wit` in the host's types |
//! | [`code`] | code that implements the contract: a component, or functions of this process |
//! | [`engine`] | the sandboxes in which components run |
//! | [`compile`], [`cache`] | compilation in a separate process, and the cache of its results |
//! | [`gate`] | every step from the bytes of a package to a policy |
//! | [`manifest`] | `policy.yaml`: scope, limits, grants |
//! | [`policy`] | a policy that passed the gate, and stacks of policies |
//! | [`settings`] | layers, schema, origins |
//! | [`lookup`] | a pass's view of the cluster |
//! | [`render`] | the pass: from an object to its manifests, and from live children to its status |
//! | [`guard`] | the checks of needs and plans |
//! | [`kubernetes`] | finds values in a manifest that an API server would refuse, without a request |
//! | [`stamp`] | the metadata that the host writes into every manifest |
//! | [`memo`] | a store of answers, which returns an answer while the answer is valid |
//! | [`limits`], [`failure`] | the limits of a pass, and the ways it can fail |
//! | [`names`] | Kubernetes' rules for names |
//! | [`near`] | finds the name that a user probably meant |
//! | [`mod@cut`], [`mod@printable`] | cut long texts in messages, and escape texts that control a terminal |
//! | [`yaml`], [`objections`] | explain errors in YAML texts, and errors of values by their JSON Schema |
//! | [`digest`] | digests and canonical JSON |

mod adapter;
pub mod cache;
pub mod clock;
pub mod code;
pub mod compile;
pub mod contract;
pub mod cut;
pub mod describe;
pub mod engine;
mod extra;
pub mod failure;
pub mod gate;
pub mod guard;
mod inspect;
mod json;
pub mod kubernetes;
pub mod limits;
pub mod lookup;
pub mod manifest;
pub mod near;
mod object;
pub mod objections;
mod origins;
mod pods;
pub mod policy;
pub mod printable;
pub mod render;
pub mod rollout;
mod rule;
pub mod settings;
pub mod stamp;
pub mod units;
pub mod yaml;

pub use kaos_objects::{digest, names};
pub use render::memo;
