//! The objects and policies of a cluster that a console keeps. Watches keep the objects up to date with the rights of the user, once for all
//! pages.
//!
//! | module | content |
//! |---|---|
//! | `state` | [`Model`]: the objects and the policies in memory |
//! | `objects` | the objects, their states and their connections |
//! | `start` | reads the policies, and starts the watches |
//! | `watches`, `watched_type` | the watches |
//! | `places` | the namespaces that the user may see |
//! | `connections` | asks the policies what each object uses |

mod connections;
mod objects;
mod places;
mod start;
mod state;
mod watched_type;
mod watches;

pub(super) use objects::KeptObject;
pub(super) use places::Places;
pub(super) use start::start;
pub(super) use state::{Limits, Model};
