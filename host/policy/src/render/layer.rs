//! One layer of a stack in one pass.

use std::sync::Arc;

use super::{PolicyFailure, RenderError, binding::Bound};
use crate::{
    code::Sandbox,
    contract::{Claim, ResourceType},
    settings::Effective,
};

/// A layer in one pass: its policy, its claim on the kind, and its settings for this object.
pub(super) struct PassLayer<'a> {
    pub(super) bound: &'a Bound,
    pub(super) claim: &'a Claim,
    pub(super) settings: Arc<Effective>,
}

impl<'a> PassLayer<'a> {
    pub(super) fn of(bound: &'a Bound, of: &ResourceType) -> Result<Self, RenderError> {
        let claim = bound
            .policy
            .claim(of)
            .ok_or_else(|| RenderError::NotClaimed { policy: bound.policy.id().name.clone(), of: of.clone() })?;
        Ok(Self { bound, claim, settings: Arc::clone(&bound.settings) })
    }

    pub(super) fn name(&self) -> &str {
        &self.bound.policy.id().name
    }

    pub(super) fn open(&self) -> Result<Box<dyn Sandbox + '_>, PolicyFailure> {
        self.bound.open().map_err(|failure| PolicyFailure::new(self.bound.policy.id(), failure, "", &[]))
    }
}
