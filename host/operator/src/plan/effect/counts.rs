//! The numbers of an effect.

/// The numbers of an effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects that the change concerns.
    pub objects: u64,
    /// Objects that change.
    pub changed: u64,
    /// Children that change.
    pub children: u64,
    /// Workloads with pods that Kubernetes replaces.
    pub rolls: u64,
    /// Pods of all objects.
    pub pods: u64,
    /// Pods that Kubernetes replaces or deletes.
    pub pods_replaced: u64,
    /// Objects that the policies refuse only after the change.
    pub refused: u64,
    /// Objects on which a policy fails only after the change, and objects with a child that the API server refuses.
    pub failed: u64,
    /// Objects on which a policy fails after the change.
    pub failing: u64,
    /// Objects whose changes are applied only when their plan gates open.
    pub waiting: u64,
    /// Objects with an unknown effect, and kinds with objects that the caller cannot see.
    pub unknown: u64,
}

/// The fuel that a pass takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fuel {
    /// The median fuel of all objects.
    pub median: u64,
    /// The maximum fuel of all objects.
    pub most: u64,
}

impl Fuel {
    pub(super) fn of(mut each: Vec<u64>) -> Self {
        each.sort_unstable();
        let at = |place: usize| each.get(place).copied().unwrap_or_default();
        Self { median: at(each.len() / 2), most: at(each.len().saturating_sub(1)) }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { objects, changed, pods_replaced, refused, failed, waiting, unknown, .. } = self;
        write!(f, "{changed} of {objects} objects change, {pods_replaced} pods replaced")?;
        for (many, what) in [(refused, "refused"), (failed, "failed"), (waiting, "held by gates"), (unknown, "unknown")]
        {
            if *many > 0 {
                write!(f, ", {many} {what}")?;
            }
        }
        Ok(())
    }
}

pub(super) fn count(many: usize) -> u64 {
    u64::try_from(many).unwrap_or(u64::MAX)
}

pub(super) fn number(many: u64) -> i64 {
    i64::try_from(many).unwrap_or(i64::MAX)
}
