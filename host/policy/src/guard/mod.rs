//! The guard: checks a policy's needs and answers before the host acts on them.
//!
//! The guard never corrects or drops a part of an answer. Each breach names the rule and the path. One breach voids the
//! whole answer.
//!
//! The guard checks all parts of a plan that can affect anything outside of the object's own namespace, pods and
//! rights:
//!
//! - types, namespaces and names outside of the claim;
//! - power over nodes and other ServiceAccounts;
//! - Secrets and PersistentVolumeClaims whose names come neither from the user's spec nor from the settings
//!   ([`Rule::NamedReferences`]);
//! - Services that clients outside of the cluster can reach;
//! - volumes and devices of other users, and tokens that other services trust;
//! - metadata that the host or a controller acts on, also inside of templates;
//! - finalizers of other controllers.
//!
//! The plan declares the origin of each such value ([`crate::contract::Origin`]). The guard looks up the value only at
//! the declared origin, and never searches for the value elsewhere.
//!
//! The guard checks the plan of the policy, and then the plan of each overlay. So the guard knows which layer broke a
//! rule.
//!
//! The guard deliberately does not check the following parts of a plan. The policy is responsible for them, or the
//! cluster has better means (in parentheses):
//!
//! - images and commands (admission, image policies);
//! - `tolerations`, affinity, resources and `replicas` (quotas);
//! - ConfigMaps that pods name; labels and selectors; NetworkPolicies of the namespace;
//! - hosts of routes, and the addresses that a load balancer may get;
//! - pod annotations of add-ons, except security profiles and cloud roles;
//! - references inside of custom resources, except in their pod specs: the operator's rights limit the types that a
//!   policy may emit;
//! - PersistentVolumeClaims that a `StatefulSet` adopts by their names, because only the names show to whom they
//!   belong.

mod allowed;
mod annotated;
mod below;
mod breaches;
mod env;
mod filled;
mod finalizer;
mod guarded_manifest;
mod manifest;
mod metadata;
mod needs;
mod plan;
mod power;
mod privilege;
mod raised;
mod reason;
mod references;
mod rules;
mod selectors;
mod shape;

use guarded_manifest::GuardedManifest;
pub(crate) use needs::{may_read, needs};
pub(crate) use plan::{plan, report};
pub(crate) use rules::{Below, Mapped, Rules, Stop};

pub use crate::rule::{Breach, Rule, UserPrivileges};
