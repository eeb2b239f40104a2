//! Generates random objects like those that users write.

use fastrand::Rng;
use serde_json::Value;

use super::samples::model_api_for;

/// Picks one of several values.
///
/// # Panics
/// If there are no values.
pub fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())].clone()
}

/// Picks any number of the values, possibly none.
pub fn some<'a>(rng: &mut Rng, of: &[&'a str]) -> Vec<&'a str> {
    of.iter().copied().filter(|_| rng.bool()).collect()
}

/// Returns a ModelAPI with random models. If `sane` is false, the model that Agents use can be missing.
pub fn model(rng: &mut Rng, name: &str, sane: bool) -> Value {
    let lists: [&[&str]; 4] = [&["*"], &["gpt-4o"], &["gpt-4o", "tiny"], &["tiny"]];
    model_api_for(name, lists[rng.usize(..if sane { 3 } else { 4 })])
}
