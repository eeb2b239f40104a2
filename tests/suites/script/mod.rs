//! Tests policies that are scripts. The types for authors of scripts must follow the contract. The JavaScript versions
//! of the template and of the policy `queue` must answer like the Rust versions.

mod guide_table;
mod mcpserver;
mod overlay;
mod queue;
pub(crate) mod records;
mod reports;
mod same;
mod table;
mod typings;
