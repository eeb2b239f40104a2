//! Everything a KAOS policy is written with.
//!
//! Implement [`Policy`] (five plain functions) or [`Overlay`] (three), and name the type in
//! [`export_policy!`] or [`export_overlay!`]. The rest of the crate is what those functions need:
//!
//! | to | use |
//! |---|---|
//! | read the object, its settings and what was found | [`SubjectExt`], [`Object`], [`Lookup`] |
//! | ask for other objects | [`need`] |
//! | build the env mapping | [`env`] |
//! | lay a user's partial pod spec over the policy's | [`patch`] |
//! | answer: refusals, gates, notes, conditions, plans | [`refusal`], [`blocker`], [`note`], [`condition`], [`plan`] |
//! | put text into YAML or a shell command | [`quote`] |
//! | make and check names | [`names`] |
//! | read quantities and durations | [`quantity`], [`duration`] |
//! | parse YAML (feature `yaml`) | `yaml` |
//! | test all of it in a few lines | [`testing`] |

/// The generated bindings, one module a world; [`types`] has what authors need of them.
#[doc(hidden)]
pub mod bindings {
    pub use kaos_policy_bindings_overlay as overlay;
    pub use kaos_policy_bindings_policy as policy;
}
mod decode;
pub mod duration;
pub mod env;
mod export;
pub mod json;
pub mod names;
pub mod need;
mod object;
pub mod patch;
mod path;
pub mod plan;
pub mod quantity;
pub mod quote;
mod say;
mod subject;
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
pub mod testing;
pub mod types;
#[cfg(any(feature = "yaml", test))]
pub mod yaml;

pub use decode::{Error as DecodeError, decode};
#[doc(hidden)]
pub use export::__contract_bytes;
pub use export::{CONTRACT_VERSION, Overlay, Policy};
pub use object::Object;
pub use path::Path;
pub use say::{Violations, blocker, condition, note, refusal};
pub use subject::{Lookup, SubjectExt};
