//! Tests policies that are scripts. The types for authors of scripts must follow the contract. The template and the
//! policy `queue` in JavaScript must answer like their versions in Rust.

mod guide_table;
mod mcpserver;
mod overlay;
mod queue;
pub(crate) mod records;
mod reports;
mod same;
mod table;
mod typings;
