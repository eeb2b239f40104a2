//! The keys of remembered answers.

use super::binding::Binding;
use crate::{digest::Digest, settings::Effective};

/// What decides an answer before anything is looked up.
pub(super) fn pass_key<'a>(binding: &Binding, settings: impl Iterator<Item = &'a Effective>, object: &str) -> Digest {
    let layers: Vec<_> =
        binding.layers().map(|(policy, _)| (policy.id().digest, policy.limits(), policy.grants())).collect();
    let settings: Vec<_> = settings.map(Effective::digest).collect();
    Digest::of_written(&(layers, settings, binding.context(), object))
}
