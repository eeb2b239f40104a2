//! Tests of policies that are scripts: the types for authors follow the contract, and the template in JavaScript answers
//! like the template in Rust.

mod records;
mod same;
mod table;
mod typings;
