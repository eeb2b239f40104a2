//! The flags of `run`, and the checks that need only the flags. The flags have the same names as in the Go operator.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args, ValueEnum};
use kaos_policy::{
    compile::container_memory,
    guard::UserPrivileges,
    rollout::{Rollout, RolloutGate},
};

use super::super::{
    compatibility::Compatibility, connection::Connection, decision_point::DecisionPointFlags,
    grantable::GrantableFlags, left_out::Without, rbac::scope,
};
use crate::{
    budgets::BudgetLimits,
    catalogue::{CodeShare, DefaultsRollout},
    leader_election::{Timing, TimingError, identity},
    masking::Hidden,
    operator::Options,
    reading::{self, ReadError, SETTINGS},
    serve::{BindAddress, LocalAddress},
};

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(
    // The chart sets some flags. If a user sets the same flag again, the user's value counts.
    args_override_self = true,
    after_help = "Exit codes: 0 = a signal stopped the operator, and all passes finished; 1 = the Lease was lost, or a \
                  part of the operator ended by itself; 2 = flags, settings, policies or the kubeconfig are invalid; \
                  130 = a second signal stopped the operator at once."
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(in crate::cli) struct Run {
    #[command(flatten)]
    pub(super) connection: Connection,
    /// Namespace that the operator runs in
    #[arg(short = 'n', long, env = "SYSTEM_NAMESPACE", default_value = super::super::HOME, value_parser = super::super::namespace)]
    operator_namespace: String,
    /// Namespaces to work in, with Roles and without cluster-wide rights; all namespaces if none is given
    #[arg(long, env = "WATCH_NAMESPACES", value_delimiter = ',', value_name = "A,B", value_parser = super::super::one_namespace)]
    namespaces: Vec<String>,
    /// DNS domain of the cluster's Services
    #[arg(long, env = "KUBERNETES_CLUSTER_DOMAIN", default_value = "cluster.local", value_parser = super::super::domain)]
    cluster_domain: String,
    /// Namespaces that the default policies may read when they answer for objects in the operator's namespace, such as
    /// an AuthorizationPolicy
    #[arg(long, env = "READ_NAMESPACES", value_delimiter = ',', value_name = "A,B", value_parser = super::super::one_namespace)]
    pub(super) read_namespaces: Vec<String>,
    #[command(flatten)]
    pub(super) decision_point: DecisionPointFlags,
    /// Component of a policy, which replaces the default policy for the kinds that it claims; an overlay is added to
    /// the default policy
    #[arg(long = "policy", value_name = "X.wasm")]
    pub(super) policies: Vec<PathBuf>,
    /// File with settings as YAML: a section for each policy, or settings for every policy that declares them
    #[arg(long, value_name = "FILE")]
    pub(super) settings: Option<String>,
    /// One setting; the path can start with a policy's name
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(super) set: Vec<String>,
    #[command(flatten)]
    pub(super) compatibility: Compatibility,
    /// Accept policies from ConfigMaps in other namespaces than the operator's
    #[arg(long, env = "NAMESPACE_POLICIES")]
    pub(super) namespace_policies: bool,
    /// Address that serves metrics: :8080, 127.0.0.1:8080, or 0 for none
    #[arg(long, value_name = "ADDRESS", default_value_t = BindAddress::Everywhere(8080))]
    pub(super) metrics_bind_address: BindAddress,
    /// Address that serves /livez and /readyz; can be the same as the address of the metrics
    #[arg(long, value_name = "ADDRESS", default_value_t = BindAddress::Everywhere(8081))]
    pub(super) health_probe_bind_address: BindAddress,
    /// Address that serves /debug/objects/KIND/NAMESPACE/NAME, which explains an object: a loopback address, or 0 for
    /// none
    #[arg(long, value_name = "ADDRESS", default_value_t = LocalAddress::default())]
    pub(super) debug_bind_address: LocalAddress,
    /// Write only while holding the Lease, so that several replicas can run
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    pub(super) leader_elect: bool,
    /// Time without renewal after which another replica can take the Lease
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time)]
    leader_elect_lease_duration: Duration,
    /// Time without renewal after which the holder stops writing
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    leader_elect_renew_deadline: Duration,
    /// Time between two attempts to take or renew the Lease
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    leader_elect_retry_period: Duration,
    /// Number of passes that run in parallel
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: u16,
    /// Maximum number of objects per second that get a pass because a policy or its settings changed; 0 for no limit
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    rollout_rate: u16,
    /// Fuel that the policies may use each minute for the objects of one kind in one namespace, such as 500M or 20G; 0
    /// for no limit. If the fuel is used up, objects wait. After an unused minute, twice this fuel is possible in a
    /// minute
    #[arg(long, env = "NAMESPACE_FUEL", value_name = "NUMBER", default_value = "0", value_parser = amount)]
    namespace_fuel: u64,
    /// Number of passes each minute over the objects of one kind in one namespace; 0 for no limit. See --namespace-fuel
    #[arg(long, env = "NAMESPACE_PASSES", value_name = "NUMBER", default_value = "0", value_parser = amount)]
    namespace_passes: u64,
    /// Time limit of a pass over one object
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = some_time)]
    pass_deadline: Duration,
    /// Time limit of a request to the API server
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = some_time)]
    pub(super) request_deadline: Duration,
    /// Time after which an object gets a pass even if nothing changed; cannot be switched off
    #[arg(long, value_name = "TIME", default_value = "10h", value_parser = some_time)]
    resync: Duration,
    /// Time that running passes get to finish after a signal; must be shorter than the pod's
    /// terminationGracePeriodSeconds
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = time)]
    grace_period: Duration,
    /// Record in ConfigMaps which objects are settled, so that a restart need not ask the policies about them
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = ArgAction::Set)]
    record_settled: bool,
    /// Watch Secrets: their existence, keys and a digest, so that pods can restart when a Secret changes; needs
    /// --digest-key-file
    #[arg(long, env = "WATCH_SECRETS", requires = "digest_key_file")]
    watch_secrets: bool,
    /// File with the key for digests of Secrets: at least 16 bytes, which must stay the same over restarts
    #[arg(long, env = "DIGEST_KEY_FILE", value_name = "FILE")]
    digest_key_file: Option<PathBuf>,
    /// Whether fields that a user wrote in an object may raise the privileges of its pods
    #[arg(long, value_enum, default_value_t)]
    user_privileges: Privileges,
    #[command(flatten)]
    pub(super) grantable: GrantableFlags,
    /// Limits for the effect of every package that users install, as rollout.gate in policy.yaml, such as
    /// {noneRefused: true, maxPodsReplaced: 10%}. A package can only add limits
    #[arg(long, env = "ROLLOUT_GATE", value_name = "LIMITS", default_value = "", hide_default_value = true)]
    rollout_gate: RolloutGate,
    /// Defaults for the steps in which packages start to serve, as rollout in policy.yaml, such as {mode: staged,
    /// steps: [1, 5%, 25%, 100%], pause: 5m, patience: 10m, maxUnavailable: 25%}. A package can set other values
    #[arg(long, env = "ROLLOUT", value_name = "DEFAULTS", default_value = "", hide_default_value = true, value_parser = Rollout::defaults)]
    rollout: Rollout,
    /// How the default policies start to serve after another version of the operator served other default policies. The
    /// steps come from --rollout, and the limits of --rollout-gate apply
    #[arg(long, env = "DEFAULT_POLICIES_ROLLOUT", value_enum, default_value_t)]
    pub(super) default_policies_rollout: DefaultsRollout,
    /// Size limit of the flight recorder, which keeps decisions of the policies for a day: 512KiB, 16MiB, or 0 to
    /// switch it off
    #[arg(long, env = "RECORD_MEMORY", value_name = "SIZE", default_value = "16MiB", value_parser = size)]
    record_memory: usize,
    #[command(flatten)]
    without: Without,
    /// Read lists as streams if the API server supports this; streams save memory on the API server
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = ArgAction::Set)]
    streaming_lists: bool,
    /// Format of the logs on standard error
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t)]
    pub(super) log_format: LogFormat,
    /// Level of the logs: error, warn, info, debug, trace, or directives such as info,kube=debug
    #[arg(long, env = "RUST_LOG", default_value = "info")]
    pub(super) log_level: String,
}

/// The output format of the logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object in each line
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Privileges {
    /// Such fields are allowed
    #[default]
    Allowed,
    /// Such fields are refused
    Refused,
}

/// Flags that contradict each other or that this machine cannot satisfy.
#[derive(Debug, thiserror::Error)]
pub(super) enum FlagError {
    #[error("--leader-elect-lease-duration, --leader-elect-renew-deadline, --leader-elect-retry-period: {0}")]
    Timing(#[from] TimingError),
    #[error("--digest-key-file {0}")]
    Key(#[from] ReadError),
    #[error("--digest-key-file {}: is shorter than 16 bytes", .0.display())]
    ShortKey(PathBuf),
    #[error("this system has no random numbers: {0}")]
    NoRandomness(getrandom::Error),
}

impl Run {
    /// Returns the timing of the Lease.
    pub(super) fn timing(&self) -> Result<Timing, FlagError> {
        let timing = Timing {
            duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        };
        timing.check()?;
        Ok(timing)
    }

    /// Returns the operator's options.
    pub(super) fn options(&self) -> Result<Options, FlagError> {
        let secret_key = match self.digest_key_file.as_ref().filter(|_| self.watch_secrets) {
            None => Vec::new(),
            Some(path) => {
                let key = reading::bytes(path, SETTINGS)?;
                if key.len() < 16 {
                    return Err(FlagError::ShortKey(path.clone()));
                }
                key
            }
        };
        Ok(Options {
            operator_namespace: self.operator_namespace.clone(),
            cluster_domain: self.cluster_domain.clone(),
            namespaces: scope(&self.namespaces),
            workers: usize::from(self.workers),
            pace: Duration::from_secs(1).checked_div(self.rollout_rate.into()).unwrap_or_default(),
            pass_deadline: self.pass_deadline,
            resync: self.resync,
            grace: self.grace_period,
            secrets: self.watch_secrets,
            secret_key: Hidden(secret_key),
            user_privileges: match self.user_privileges {
                Privileges::Allowed => UserPrivileges::Allowed,
                Privileges::Refused => UserPrivileges::Forbidden,
            },
            grantable: self.grantable.grantable(),
            rollout_gate: self.rollout_gate.clone(),
            rollout_defaults: self.rollout.clone(),
            left_out: self.without.left_out(),
            decision_point: self.decision_point.decision_point(),
            code_share: CodeShare::of(container_memory()),
            streaming_lists: self.streaming_lists,
            instance: identity(),
            seed: fastrand::u64(..),
            budget: BudgetLimits {
                fuel: (self.namespace_fuel > 0).then_some(self.namespace_fuel),
                passes: (self.namespace_passes > 0).then_some(self.namespace_passes),
            },
            record: self.record_memory,
            proofs: self.record_settled,
            decision_key: Hidden(random_key()?),
            ..Options::default()
        })
    }
}

/// Returns a random key.
fn random_key() -> Result<Vec<u8>, FlagError> {
    let mut key = vec![0; 32];
    getrandom::fill(&mut key).map_err(FlagError::NoRandomness)?;
    Ok(key)
}

/// Parses a size: `0`, `512KiB` or `16MiB`.
fn size(text: &str) -> Result<usize, String> {
    let bytes = in_units(text, &[("KiB", 1 << 10), ("MiB", 1 << 20)]);
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| "is not a size: write 0, 512KiB or 16MiB".to_owned())
}

/// Parses a number: `0`, `500`, `500M` or `20G`.
fn amount(text: &str) -> Result<u64, String> {
    let units = [("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)];
    in_units(text, &units).ok_or_else(|| "is not a number: write 0, 500, 500M or 20G".to_owned())
}

/// Parses a number with or without one of these units. Each unit has a factor.
fn in_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let unit = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = unit.unwrap_or((text, 1));
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<u64>().ok().filter(|_| is_plain)?.checked_mul(factor)
}

/// Parses a duration in Go's notation: `1m30s`.
fn time(text: &str) -> Result<Duration, String> {
    // Reject large numbers and minus signs inside the text first, because the parser panics on them.
    let is_long = text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 9);
    if is_long || text.rfind('-').is_some_and(|at| at > 0) {
        return Err("is not a duration: write 500ms, 15s or 1m30s".to_owned());
    }
    let parsed: kube::core::Duration = text.parse().map_err(|error| format!("{error}: write 500ms, 15s or 1m30s"))?;
    if parsed.is_negative() { Err("is negative".to_owned()) } else { Ok(parsed.into()) }
}

/// Like `time`, but rejects zero.
fn some_time(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if time.is_zero() { Err("must be longer than 0: write 500ms, 15s or 1m30s".to_owned()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};

    use super::*;

    fn given(flags: &[&str]) -> Run {
        let command = Run::augment_args(Command::new("run").no_binary_name(true));
        Run::from_arg_matches(&command.try_get_matches_from(flags).unwrap()).unwrap()
    }

    #[test]
    fn of_a_repeated_flag_the_last_value_wins_and_lists_accumulate() {
        let run = given(&["--log-level=info", "--workers=2", "--leader-elect", "--log-level=debug", "--workers=3"]);
        assert_eq!((run.log_level.as_str(), run.workers, run.leader_elect), ("debug", 3, true));
        assert!(!given(&["--leader-elect", "--leader-elect=false"]).leader_elect);
        assert!(given(&["--leader-elect", "--leader-elect=false", "--leader-elect"]).leader_elect);
        assert!(given(&["--namespace-policies", "--namespace-policies"]).namespace_policies);
        assert_eq!(given(&["--namespaces=a,b", "--namespaces=c"]).namespaces, ["a", "b", "c"]);
    }

    #[test]
    fn an_invalid_duration_is_refused() {
        for text in ["99999999999999999999h", "1s-5s", "--1s", "-1s", "1", "s", "1x", "-", ""] {
            assert!(some_time(text).is_err(), "{text}");
        }
        assert_eq!(some_time("1m30.5s"), Ok(Duration::from_millis(90_500)));
        assert_eq!(some_time("999999999h"), Ok(Duration::from_hours(999_999_999)));
    }

    #[test]
    fn a_size_has_a_number_and_a_unit() {
        for (text, bytes) in [("0", 0), ("512KiB", 512 << 10), ("16MiB", 16 << 20), ("7", 7)] {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "MiB", "-1MiB", "+1", "16MB", "1.5MiB", "99999999999999999999MiB"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(given(&[]).record_memory, crate::operator::RECORD);
    }

    #[test]
    fn a_deadline_of_zero_is_refused() {
        for flag in ["--resync", "--pass-deadline", "--request-deadline"] {
            for none in ["0", "0s"] {
                let command = Run::augment_args(Command::new("run").no_binary_name(true));
                let refused = command.try_get_matches_from([flag, none]).unwrap_err().to_string();
                assert!(refused.contains(flag) && refused.contains("must be longer than 0"), "{refused}");
            }
        }
        assert!(given(&["--grace-period", "0"]).grace_period.is_zero());
    }

    #[test]
    fn the_debug_address_is_a_loopback_address_or_off() {
        let at = |flags: &[&str]| given(flags).debug_bind_address.to_string();
        assert_eq!(at(&[]), "127.0.0.1:8082");
        assert_eq!(at(&["--debug-bind-address=0"]), "0");
        let command = Run::augment_args(Command::new("run").no_binary_name(true));
        let refused = command.try_get_matches_from(["--debug-bind-address=:8082"]).unwrap_err().to_string();
        assert!(refused.contains("--debug-bind-address") && refused.contains("kubectl port-forward"), "{refused}");
    }
}
