//! Checks a policy without a cluster: runs passes over samples and random objects, and reports each failed check with
//! the smallest failing object.
//!
//! | module | contents |
//! |---|---|
//! | `inputs` | the policy and the objects to check |
//! | `checks` | runs the checks over all objects |
//! | `cases` | the objects: samples, objects from files, random objects |
//! | `mutate` | turns a valid object into a random valid object |
//! | `exam` | runs the passes over one object, and finds the problems |
//! | `passes` | passes over the fixed objects, for measurements |
//! | `paths` | decides whether the path in a refusal exists |
//! | `difference` | finds the first difference between two values |
//! | `shrink` | removes fields from a failing object while the check still fails |
//! | `candidates` | other values for a setting |
//! | `effects` | decides which settings have an effect |
//! | `results` | the results of all checks |
//! | `refusals` | counts the refusals by the field that they name |
//! | `unchecked` | the fields of manifests of custom kinds, and the kinds with unknown fields |
//! | `report` | formulates the result of each check |
//! | `spread` | percentiles |

mod candidates;
mod cases;
mod checks;
mod difference;
mod effects;
mod error;
mod exam;
mod inputs;
mod mutate;
mod passes;
mod paths;
mod refusals;
mod report;
mod results;
mod shrink;
mod spread;
#[cfg(test)]
mod tests;
mod unchecked;

pub use checks::check;
pub use error::ConformError;
pub use inputs::Inputs;
pub use passes::Passes;
pub use results::{CheckOutcome, CheckResult, ClaimedKind, Counterexample, End, Findings, FrequentRefusal};
pub use spread::Spread;
pub(crate) use unchecked::{refused, told, unchecked};
