//! The objects and policies that a console keeps in memory, once for all pages. Watches with the rights of the user
//! keep the objects up to date.
//!
//! | module | content |
//! |---|---|
//! | `state` | [`Model`]: the objects and the policies in memory |
//! | `objects`, `connections`, `counts` | the objects, their states, what they use, and their numbers |
//! | `groups` | objects by namespace and kind |
//! | `start` | reads the policies, and starts the watches |
//! | `watches`, `watched_type`, `watch_states` | the watches, and their states |
//! | `reports` | what the watches report, and what the user cannot see |
//! | `places`, `descriptors` | the namespaces that the user may see, and how many of them the console can watch |
//! | `used_objects` | asks the policies what each object uses |
//! | `reads` | remembers reads without a watch for some seconds |
//! | `open_pages` | which changes wake which pages |

mod connections;
mod counts;
mod descriptors;
mod groups;
mod objects;
mod open_pages;
mod places;
mod reads;
mod reports;
mod start;
mod state;
#[cfg(test)]
pub(super) mod tests;
mod used_objects;
mod watch_states;
mod watched_type;
mod watches;

pub(super) use counts::{Count, GroupKey};
pub(super) use groups::Groups;
pub(super) use objects::KeptObject;
pub(super) use open_pages::{Interest, OpenPage};
pub(super) use places::Places;
pub(super) use reports::Limits;
pub(super) use start::start;
pub(super) use state::Model;
