//! The memory that compiled code of tenants' policies may take.
//!
//! The limit of one check says how much code one component may become. Without a limit of the sum, the policies of a
//! namespace could together take more memory than the operator has, and again after each restart.

use kaos_policy::units::bytes;

/// The share of the container's memory for the code of all tenants.
const SHARE: usize = 4;
/// The memory of a container without a known limit.
const UNKNOWN: usize = 1 << 30;
/// The part of the code of all tenants that one namespace may have.
const PART: usize = 2;

/// The most bytes of compiled code of policies that namespaces other than the operator's installed. Counts the policies
/// that serve, those that wait to serve, and the fallbacks in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeShare {
    /// The most bytes of one namespace.
    pub namespace: usize,
    /// The most bytes of all namespaces together.
    pub tenants: usize,
}

/// The bytes of compiled code without a policy that is to be added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CodeSum {
    /// The bytes of the policy's namespace.
    pub(super) namespace: usize,
    /// The bytes of all namespaces together.
    pub(super) tenants: usize,
}

/// A policy whose compiled code has no room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooMuchCode {
    /// The namespace has too much.
    #[error(
        "with it, the policies of namespace {namespace} have {} of compiled code, at most {}: delete one of them, or \
         build with opt-level s and leave out unused code",
        bytes(*.sum), bytes(*.limit)
    )]
    OfNamespace {
        /// The namespace.
        namespace: String,
        /// The sum with the policy.
        sum: usize,
        /// The most bytes allowed.
        limit: usize,
    },
    /// All namespaces together have too much.
    #[error(
        "with it, the policies of all namespaces other than the operator's have {} of compiled code, at most {}: delete \
         policies that are not needed, or give the operator's container more memory",
        bytes(*.sum), bytes(*.limit)
    )]
    OfTenants {
        /// The sum with the policy.
        sum: usize,
        /// The most bytes allowed.
        limit: usize,
    },
}

impl TooMuchCode {
    /// The reason in one word.
    pub(super) const REASON: &str = "TooMuchCode";
}

impl CodeShare {
    /// The share of a container with this memory, if its limit is known.
    pub fn of(memory: Option<u64>) -> Self {
        let tenants = memory.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(UNKNOWN).min(UNKNOWN) / SHARE;
        Self { namespace: tenants / PART, tenants }
    }

    /// Checks whether there is room for a policy's code next to that of others.
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
                "with it, the policies of namespace greedy have 11 MiB of compiled code, at most 10 MiB: delete"
            ),
            "{told}"
        );
        let told = admit(0, 13, 3).unwrap_err();
        assert!(
            told.contains("have 16 MiB of compiled code, at most 15 MiB: delete") && told.contains("more memory"),
            "{told}"
        );
    }
}
