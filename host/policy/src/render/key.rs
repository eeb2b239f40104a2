//! The keys with which the memo stores answers.

use super::binding::Binding;
use crate::{digest::Digest, settings::Effective};

/// Returns the key of a pass: a digest of all inputs that the layers have before the first lookup.
pub(super) fn pass_key<'a>(
    binding: &Binding,
    settings: impl Iterator<Item = &'a Effective>,
    object: &str,
    applied: bool,
) -> Digest {
    let layers: Vec<_> =
        binding.layers().map(|(policy, _)| (policy.id().digest, policy.limits(), policy.grants())).collect();
    let settings: Vec<_> = settings.map(Effective::digest).collect();
    Digest::of_written(&(layers, settings, binding.context(), object, applied))
}
