//! Generates random values from the schemas of kinds and of Kubernetes' own types, for `policy conform` and for tests.
//!
//! | module | contents |
//! |---|---|
//! | `generator` | values from schemas |
//! | `words` | valid and invalid values for fields |

mod generator;
mod words;

pub use generator::{Draw, Generator};
