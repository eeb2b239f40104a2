//! A cluster with an operator on it, for the tests of reconciliation.
//!
//! A test states its requirements in a [`Scenario`] and gets a [`World`]. Usually this is an embedded cluster for this
//! test alone, in this process and in simulated time. With `KAOS_TEST_KUBECONFIG` set, all tests share a real control
//! plane, and each test has its own namespace. A scenario may require one of the two clusters. Then its test is skipped
//! on the other one.
//!
//! | module | contents |
//! |---|---|
//! | [`scenario`] | a test's requirements |
//! | [`stage`], [`definitions`] | runs a test's story on its cluster; the definitions of kinds there |
//! | [`world`] | the handle: apply, patch, delete, look |
//! | [`wait`], `watchdog` | wait for a condition, and print details when it does not come true |
//! | [`operator`], [`running`], `account` | start, stop and crash operators; their identity on a real cluster |
//! | `setting`, `compiler` | the settings of operators; a compiler that fails and hangs |
//! | [`replicas`] | operators that take turns on a Lease |
//! | [`requests`] | the operator's requests to the API server |
//! | [`faults`], [`breaking`], [`crash`] | scripted faults, and the point at which the operator crashes |
//! | [`kinds`] | names of objects, and the types that tests use |
//! | [`samples`], [`whims`] | objects of the KAOS kinds, and random wishes of users |
//! | [`history`] | every state of an object |
//! | [`read`] | reads conditions and metadata |
//! | [`state`] | the contents of a namespace once nothing changes any more |

mod account;
pub mod breaking;
mod compiler;
pub mod crash;
pub mod definitions;
pub mod faults;
pub mod history;
pub mod kinds;
mod once;
pub mod operator;
pub mod read;
pub mod replicas;
pub mod requests;
pub mod running;
pub mod samples;
pub mod scenario;
mod setting;
pub mod stage;
pub mod state;
pub mod wait;
mod watchdog;
pub mod whims;
pub mod world;

pub use faults::Fault;
pub use read::{condition, is_ready, is_true, reason};
pub use scenario::{Scenario, is_real};
pub use stage::play;
pub use world::World;
