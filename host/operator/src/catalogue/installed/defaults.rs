//! The default policies of a process, and the sources of their revisions.

use std::{collections::BTreeSet, sync::Arc};

use clap::ValueEnum;
use kaos_crds::PolicySource;
use kaos_policy::{
    policy::Policy,
    rollout::{Approval, Rollout, RolloutMode},
};

use crate::package::Package;

/// The field `config_map` in the source of a default policy begins with this text, and names no ConfigMap. No ConfigMap
/// has a name with a colon, so no package of a user has such a source.
const PREFIX: &str = "default:";

/// A policy that the process loaded at startup, with its package.
#[derive(Debug, Clone)]
pub struct DefaultPolicy {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The package of the policy. Another version of the operator can load the policy from this package.
    pub package: Arc<Package>,
}

/// How the default policies start to serve after another version of the operator served other default policies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DefaultsRollout {
    /// In steps if pods would be replaced; otherwise at once
    #[default]
    Auto,
    /// At once
    Now,
    /// In steps
    Staged,
    /// After a person approved the effect; then as with auto
    Hold,
}

/// The default policies of a process. If `policies` is empty, the operator records no default policies.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The policies.
    pub policies: Vec<DefaultPolicy>,
    /// How the policies start to serve.
    pub rollout: DefaultsRollout,
    /// The namespaces in which default policies are allowed to read objects for an object in the operator's namespace.
    pub reads: BTreeSet<String>,
}

impl DefaultsRollout {
    /// Returns how a default policy starts to serve. `own` is the field `rollout` of its `policy.yaml`.
    pub(super) fn of(self, own: &Rollout) -> Rollout {
        let mode = match self {
            Self::Auto | Self::Hold => RolloutMode::Auto,
            Self::Now => RolloutMode::Now,
            Self::Staged => RolloutMode::Staged,
        };
        let mut rollout = Rollout { mode: Some(mode), ..own.clone() };
        if self == Self::Hold {
            rollout.gate.approval = Some(Approval::Required);
        }
        rollout
    }
}

/// Returns the source of the default policies for the kinds of a policy. The source depends on the kind and not on the
/// name of the policy, because another version can give the policy another name.
pub(super) fn default_source(namespace: &str, policy: &Policy) -> PolicySource {
    let kinds = policy.descriptor().claims.iter().map(|claim| {
        let (group, kind) = claim.primary.group_kind();
        format!("{}.{group}", kind.to_lowercase())
    });
    let first = kinds.min().unwrap_or_default();
    PolicySource { namespace: namespace.to_owned(), config_map: format!("{PREFIX}{}", first.trim_end_matches('.')) }
}

/// Returns whether a revision is a default policy of some version of the operator, and not a package of a user.
pub(crate) fn is_default(source: &PolicySource) -> bool {
    source.config_map.starts_with(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_chooses_the_mode_and_keeps_the_limits_of_the_policy() {
        let own: Rollout = "{mode: shadow, pause: 1m, gate: {noneRefused: true}}".parse().unwrap();
        for (flag, mode, approval) in [
            (DefaultsRollout::Auto, RolloutMode::Auto, None),
            (DefaultsRollout::Now, RolloutMode::Now, None),
            (DefaultsRollout::Staged, RolloutMode::Staged, None),
            (DefaultsRollout::Hold, RolloutMode::Auto, Some(Approval::Required)),
        ] {
            let rollout = flag.of(&own);
            assert_eq!((rollout.mode, rollout.gate.approval, rollout.pause), (Some(mode), approval, own.pause));
            assert!(rollout.gate.none_refused, "{flag:?}");
        }
    }
}
