//! What users want by chance.

use fastrand::Rng;
use serde_json::Value;

use super::samples::model_api_for;

/// One of several.
///
/// # Panics
/// If there is none.
pub fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())].clone()
}

/// None of them, or some, or all.
pub fn some<'a>(rng: &mut Rng, of: &[&'a str]) -> Vec<&'a str> {
    of.iter().copied().filter(|_| rng.bool()).collect()
}

/// A ModelAPI; one that is not sane may not have the model that Agents ask for.
pub fn model(rng: &mut Rng, name: &str, sane: bool) -> Value {
    let lists: [&[&str]; 4] = [&["*"], &["gpt-4o"], &["gpt-4o", "tiny"], &["tiny"]];
    model_api_for(name, lists[rng.usize(..if sane { 3 } else { 4 })])
}
