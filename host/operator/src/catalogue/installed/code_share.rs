//! Limits the memory for the compiled code of all tenants' policies together.
//!
//! Each check limits the compiled code of one component. Without a limit for the total, the policies of a namespace
//! could together take more memory than the operator has. After each restart, the operator would run out of memory
//! again.

use kaos_policy::units::bytes;

/// The container's memory divided by this number is the limit for the code of all tenants.
const SHARE: usize = 4;
/// The assumed memory of a container without a known limit. This is also the maximum: a container without a limit gets
/// the memory of the whole node from the downward API, and the operator must not fill the node.
const UNKNOWN: usize = 1 << 30;
/// The limit for one namespace is the limit for all tenants together, divided by this number.
const PART: usize = 2;

/// The limits for the compiled code of policies that are installed in namespaces other than the operator's. The limits
/// apply to the policies that serve, the policies that wait to serve, and the fallbacks in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeShare {
    /// The maximum number of bytes for one namespace.
    pub namespace: usize,
    /// The maximum number of bytes for all namespaces together.
    pub tenants: usize,
}

/// The sizes of the compiled code in memory, without the code of the policy that the operator is about to add.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CodeSum {
    /// The bytes of compiled code in the namespace of the policy.
    pub(super) namespace: usize,
    /// The bytes of compiled code in all namespaces other than the operator's.
    pub(super) tenants: usize,
}

/// The error if the compiled code of a policy exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooMuchCode {
    /// The code of the namespace exceeds the limit.
    #[error(
        "the policies of namespace {namespace}, including this one, would have {} of compiled code in total, but the \
         limit is {}: delete one of these policies, or build with opt-level s and leave out unused code",
        bytes(*.sum), bytes(*.limit)
    )]
    OfNamespace {
        /// The namespace.
        namespace: String,
        /// The bytes of the namespace's code, including the policy.
        sum: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The code of all namespaces together exceeds the limit.
    #[error(
        "the policies outside the operator's namespace, including this one, would have {} of compiled code in total, \
         but the limit is {}: delete policies that are not needed, or give the operator's container more memory; more \
         than 1 GiB has no effect",
        bytes(*.sum), bytes(*.limit)
    )]
    OfTenants {
        /// The bytes of the code of all namespaces, including the policy.
        sum: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
}

impl TooMuchCode {
    /// The status reason of a policy if its compiled code exceeds a limit.
    pub(super) const REASON: &str = "TooMuchCode";
}

impl CodeShare {
    /// Returns the limits for a container with this memory. `None` means that the container's memory limit is not
    /// known.
    pub fn of(memory: Option<u64>) -> Self {
        let tenants = memory.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(UNKNOWN).min(UNKNOWN) / SHARE;
        Self { namespace: tenants / PART, tenants }
    }

    /// Checks that a policy's code fits into the limits together with the code of other policies.
    pub(super) fn admit(&self, namespace: &str, others: CodeSum, code: usize) -> Result<(), TooMuchCode> {
        let (namespace, limit, sum) = (namespace.to_owned(), self.namespace, others.namespace.saturating_add(code));
        if sum > limit {
            return Err(TooMuchCode::OfNamespace { namespace, sum, limit });
        }
        let (limit, sum) = (self.tenants, others.tenants.saturating_add(code));
        if sum > limit {
            return Err(TooMuchCode::OfTenants { sum, limit });
        }
        Ok(())
    }
}

impl Default for CodeShare {
    fn default() -> Self {
        Self::of(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_get_a_quarter_of_the_memory_and_each_namespace_half_of_that() {
        let small = CodeShare::of(Some(256 << 20));
        assert_eq!(small, CodeShare { namespace: 32 << 20, tenants: 64 << 20 });
        let most = CodeShare { namespace: 128 << 20, tenants: 256 << 20 };
        for memory in [None, Some(1 << 30), Some(u64::MAX)] {
            assert_eq!(CodeShare::of(memory), most);
        }
    }

    #[test]
    fn the_error_names_the_sum_the_limit_and_the_remedy() {
        let share = CodeShare { namespace: 10 << 20, tenants: 15 << 20 };
        let admit = |namespace: usize, tenants: usize, code: usize| {
            let others = CodeSum { namespace: namespace << 20, tenants: tenants << 20 };
            share.admit("greedy", others, code << 20).map_err(|error| error.to_string())
        };
        assert_eq!(admit(0, 0, 10), Ok(()));
        assert_eq!(admit(5, 10, 5), Ok(()));
        let told = admit(8, 8, 3).unwrap_err();
        assert!(
            told.starts_with(
                "the policies of namespace greedy, including this one, would have 11 MiB of compiled code in total, \
                 but the limit is 10 MiB: delete"
            ),
            "{told}"
        );
        let told = admit(0, 13, 3).unwrap_err();
        assert!(
            told.contains("have 16 MiB of compiled code in total, but the limit is 15 MiB: delete")
                && told.contains("more memory"),
            "{told}"
        );
    }
}
