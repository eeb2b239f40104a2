//! Writes the objects in the operator's namespace that the gateway's decision point needs.
//!
//! - The AuthorizationPolicy lists namespaces. The policy `authorization` writes the data of these namespaces for the
//!   decision point.
//! - Each `ReferenceGrant` lets the SecurityPolicies of one namespace refer to the Service of the decision point.
//!
//! A Helm release cannot contain the AuthorizationPolicy, because the same release installs the CRD. Also, only the
//! operator knows which namespaces contain objects.
//!
//! | what | module |
//! |---|---|
//! | the options | `options` |
//! | content of the objects | `wanted` |
//! | news about namespaces | `news` |
//! | the task that writes the objects | `keep` |

mod keep;
mod news;
mod options;
mod wanted;

pub(crate) use keep::Keeper;
pub(crate) use news::News;
pub use options::DecisionPoint;
pub(crate) use wanted::{ChosenNamespaces, KIND as AUTHORIZATION_POLICY};
