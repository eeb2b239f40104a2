//! Tests of policies that are scripts: the types for authors follow the contract, and the template and the policy `queue`
//! in JavaScript answer like the same policies in Rust.

mod queue;
pub(crate) mod records;
mod same;
mod table;
mod typings;
