//! A cluster with an operator, for the tests of reconciliation.
//!
//! A test states its requirements in a [`Scenario`] and gets a [`World`]. By default, a world is an embedded cluster in
//! this process. Each test has its own embedded cluster, in simulated time. If `KAOS_TEST_KUBECONFIG` is set, all tests
//! share a real control plane, and each test has its own namespace. A scenario may require the embedded cluster or a
//! real cluster. If the tests run on the other kind of cluster, the harness skips this test.
//!
//! | module | contents |
//! |---|---|
//! | [`scenario`] | a test's requirements |
//! | [`stage`], [`definitions`] | runs a test's story on its cluster; the CustomResourceDefinitions in this cluster |
//! | [`world`] | the test's access to its cluster: apply, patch, delete, read |
//! | [`wait`], `watchdog` | wait until a condition is true, and print details if the condition stays false |
//! | [`operator`], [`running`], `account` | start, stop and crash operators; the identity and the rights of operators |
//! | `setting`, `compiler` | the settings of operators; a compiler that fails and hangs |
//! | [`replicas`] | replicas of the operator that share a Lease |
//! | [`requests`] | the operator's requests to the API server |
//! | [`faults`], [`breaking`], [`crash`] | planned faults, and the point at which the operator crashes |
//! | [`kinds`] | names of objects, and the types that tests use |
//! | [`samples`], [`whims`] | objects of the KAOS kinds, and random objects |
//! | [`history`] | records every state of an object |
//! | [`read`] | reads conditions and metadata |
//! | [`state`] | the contents of a namespace after all changes |

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
