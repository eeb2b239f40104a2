//! A cluster with an operator on it, as the tests of reconciliation hold it.
//!
//! A test says what it needs in a [`Scenario`], and gets a [`World`]: usually the embedded cluster, one a test, in this
//! process and in simulated time. With `KAOS_TEST_KUBECONFIG` set it is a real control plane instead, shared by all
//! tests, with a namespace for each. What only one of the two can show says so, and is skipped on the other.
//!
//! | module | what is in it |
//! |---|---|
//! | [`scenario`] | what a test asks for, and the runtime that it gets |
//! | [`world`] | the handle: apply, patch, delete, look |
//! | [`wait`], `watchdog` | waiting for a condition, and what is printed when it does not come |
//! | [`operator`], `account` | starting, stopping and crashing operators, and who they are on a real cluster |
//! | [`replicas`] | operators that take turns |
//! | [`requests`] | what the operator asked of the API server |
//! | [`faults`], [`crash`] | scripts of what goes wrong, and where the operator ends in the middle of it |
//! | [`kinds`] | names of objects, and the types that tests use |
//! | [`samples`], [`whims`] | objects of the KAOS kinds, and what users want by chance |
//! | [`history`] | every state that an object went through |
//! | [`read`] | reading conditions and metadata |
//! | [`state`] | what a namespace holds when it is quiet |

mod account;
pub mod crash;
pub mod faults;
pub mod history;
pub mod kinds;
mod once;
pub mod operator;
pub mod read;
pub mod replicas;
pub mod requests;
pub mod samples;
pub mod scenario;
pub mod state;
pub mod wait;
mod watchdog;
pub mod whims;
pub mod world;

pub use faults::Fault;
pub use read::{condition, is_ready, is_true, reason};
pub use scenario::{Scenario, is_real, play};
pub use world::World;
