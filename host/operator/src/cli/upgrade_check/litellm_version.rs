//! Reads LiteLLM's version in the name of an image, with the parser of the policy `modelapi`.

#[path = "../../../../../guest-policies/modelapi/src/litellm_version.rs"]
mod parser;

pub(super) use parser::{FIRST, Version, version};
