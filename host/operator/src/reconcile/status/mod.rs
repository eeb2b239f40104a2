//! The status of an object.
//!
//! | step | module |
//! |---|---|
//! | collects the live children and asks the policy | `assess` |
//! | the delay while a controller has not observed a child's generation | `observed_generation` |
//! | the status of a pass that stopped early | `pass_failed` |
//! | transition times, and the transitions that get an Event | `times` |
//! | the fields that the kind declares | `declared_fields` |
//! | the write, only if the status differs | `write` |

pub(super) mod assess;
pub(super) mod declared_fields;
pub(super) mod observed_generation;
pub(super) mod pass_failed;
pub(super) mod times;
mod write;
