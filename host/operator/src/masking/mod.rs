//! Masks secret values, which must not appear on screens, in logs or in files. All code that shows or writes values
//! uses this module: cases, plans, previews, explanations, the console, and the debug pages.
//!
//! The names of variables, fields and flags show which values are secret. The module masks such a value wherever it
//! appears: in a line of text, in JSON or YAML within a text, in a URL, as a number, or in base64.
//!
//! | module | content |
//! |---|---|
//! | `names` | names of secret values |
//! | `hints` | finds quickly the texts that can name a secret value |
//! | `scan` | secret parts of texts in any format |
//! | `structure` | texts that contain JSON or YAML |
//! | `encoded` | encoded forms of values |
//! | `hidden` | the mask that replaces secret values |
//! | `collected` | collects the secret values of objects |
//! | `masks` | masks the collected values |

mod collected;
mod encoded;
mod hidden;
mod hints;
mod masks;
mod names;
mod scan;
mod structure;
#[cfg(test)]
pub(crate) mod tests;

pub use hidden::{Hidden, MASK};
pub use masks::Masks;
pub use names::is_secret;
pub(crate) use names::{Secrecy, can_be_secret, is_secret_argument};

/// Masks the secret values that a text itself shows: `api_key: …`, `--token=…`, `postgres://user:…@db`.
pub fn text(text: &str) -> String {
    Masks::default().text(text)
}
