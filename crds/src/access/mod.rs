//! AccessGrant and AuthorizationPolicy: which callers the gateway's decision point lets through.

mod authorization;
mod grant;
mod status;

#[cfg(feature = "schema")]
pub use authorization::AuthorizationPolicy;
pub use authorization::{AuthorizationPolicySpec, DataSource, MAX_NAMESPACES, PROJECTION_NAME};
#[cfg(feature = "schema")]
pub use grant::AccessGrant;
pub use grant::{AccessGrantSpec, Expression, GrantedKind, Operator, ResourceRef, Selector, SubjectKind, SubjectRef};
pub use status::AccessStatus;
