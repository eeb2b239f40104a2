//! The output firewall: what a policy asks for and answers, against what it may.
//!
//! Nothing is mended or dropped here. A breach names the rule and the path, and the whole answer is void.
//!
//! Guarded is what reaches beyond the object's own namespace, pods and rights: other types, places and names than the
//! claim's; power over nodes, other ServiceAccounts, Secrets and claims that nobody named ([`Rule::NamedReferences`]);
//! Services that are reached from outside, volumes and devices of others, tokens for others to trust; metadata that the host
//! or a controller acts on, also inside of templates; finalizers of others.
//!
//! Deliberately not guarded is what a policy is there to decide, or what the cluster has better means for: images and
//! commands (admission, image policies), `tolerations`, affinity, resources and `replicas` (quotas), ConfigMaps by name,
//! labels and selectors, NetworkPolicies of the namespace, hosts of routes, addresses of load balancers that may be had, and
//! annotations of pods that some add-on gives a meaning, but for those of security profiles and cloud roles. References inside of custom resources are not
//! looked for, those of pods in them apart: who may emit such a type is decided by the operator's rights. Nor are claims
//! that a `StatefulSet` finds by their name, since nothing but that name tells whose they are.

mod annotated;
mod asked;
mod breaches;
mod cap;
mod env;
mod filled;
mod finalizer;
mod manifest;
mod metadata;
mod needs;
mod plan;
mod power;
mod privilege;
mod raised;
mod references;
mod rule;
mod rules;
mod said;
mod shape;
mod words;

pub(crate) use cap::Cap;
pub(crate) use needs::{may_read, needs};
pub(crate) use plan::plan;
pub use rule::{Breach, Rule, UserPrivileges};
pub(crate) use rules::{Rules, Stop};
pub(crate) use shape::{Step, written};
pub(crate) use words::of_the_user;
