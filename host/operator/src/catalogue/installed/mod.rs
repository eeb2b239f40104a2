//! Installs the policies that users add while the operator runs. The operator finds a policy in a ConfigMap, checks it
//! at the gate, and lets it serve. If the policy fails on several objects, the operator stops serving the policy.
//!
//! One task takes all steps one after another, except checks, trials and questions to the API server, which run in the
//! background. Passes do not wait for this task. The task is level-triggered: in each round, it compares the packages
//! with the PolicyRevisions, and takes the next steps.
//!
//! | module | content |
//! |---|---|
//! | `sources` | finds and reads packages |
//! | `records` | reads and writes PolicyRevisions: the state of each revision |
//! | `store` | stores the bytes of admitted packages |
//! | `gatekeeper`, `timed_compiler` | turn a package into a policy; measure the compilation |
//! | `background` | runs background jobs, one for each revision |
//! | `checks` | runs the gate in the background |
//! | `questions` | asks the API server about rights in the background |
//! | `cases` | builds the cases in which a revision is tried before it serves |
//! | `settings_trials` | tries settings on the samples of policies in the background |
//! | `previews`, `rollout_gate` | compute the effect of a revision in the background, and compare it with the limits |
//! | `defaults` | the default policies of the process, and the sources of their revisions |
//! | `code_share` | limits the memory for compiled code of tenants' policies |
//! | `rights` | checks whether the operator has the rights for a policy's claims |
//! | `revision_name` | the names of revisions |
//! | `revision_set` | the admitted revisions, and the policy table that follows from them |
//! | `unfit` | checks whether revisions can serve together |
//! | `last_good_settings` | stores the last valid content of the operator's own ConfigMap |
//! | `tenant_fairness` | chooses the namespace whose package is checked next |
//! | `standby` | keeps policies loaded while another replica holds the Lease |
//! | `lifecycle` | moves revisions from state to state |
//! | `observed` | computes the conditions of a revision from its state |
//! | `events` | writes Events about revisions and ConfigMaps |
//! | `tools`, `step_error`, `pace` | the clients that all steps use, their error, and the intervals between attempts |

mod background;
mod cases;
mod checks;
mod code_share;
mod defaults;
mod events;
mod gatekeeper;
mod last_good_settings;
mod lifecycle;
mod observed;
mod pace;
mod previews;
mod questions;
mod records;
mod revision_name;
mod revision_set;
mod rights;
mod rollout_gate;
mod settings_trials;
mod sources;
mod standby;
mod step_error;
mod store;
mod tenant_fairness;
mod timed_compiler;
mod tools;
mod unfit;

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

pub(crate) use cases::try_all;
pub use code_share::CodeShare;
pub(crate) use defaults::is_default;
pub use defaults::{DefaultPolicy, Defaults, DefaultsRollout};
pub use gatekeeper::Gatekeeper;
pub(crate) use lifecycle::{RolloutVerb, is_withheld, next_request};
pub(crate) use previews::{EffectOfProposal, Previewer, Proposal};
pub(crate) use records::{
    APPROVED_BY, APPROVED_FOR, NOT_LOADED, RETRY, ROLLOUT, ROLLOUT_BY, ROLLOUT_FOR, Revision, retry_command,
    revision_resource,
};
pub(crate) use revision_set::{AdmittedRevision, Content, RevisionSet, Unfit, age_of, moved_objects};
pub(crate) use standby::stand_by;
pub(crate) use step_error::StepError;
pub use tools::Installing;
pub(crate) use tools::Tools;

use self::{lifecycle::Lifecycle, pace::BACKOFF, records::Records, sources::Sources, store::Store};

/// The delay between the result of a pass and the next step. Results arrive in bursts, and one step handles a whole
/// burst.
const CROWD: Duration = Duration::from_secs(1);

/// Runs the lifecycle of installed policies until `stop` is cancelled.
pub(crate) async fn run(tools: Tools, installing: Installing, stop: CancellationToken) {
    let namespace = tools.duties.operator_namespace.clone();
    let everywhere = installing.in_namespaces;
    let sources = Sources::follow(&tools.client, &tools.watch, &namespace, everywhere);
    let records = Records::follow(&tools.client, &tools.watch, &namespace);
    let store = Store::new(tools.client.clone(), &namespace);
    let catalogue = Arc::clone(&tools.catalogue);
    let mut lifecycle = Lifecycle::new(tools, installing, sources, records, store);
    let mut failures = 0_u32;
    let work = async {
        loop {
            let (due, settled) = lifecycle.settle().await;
            let wait = match settled {
                Ok(()) => {
                    failures = 0;
                    due
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    let full = BACKOFF.full(failures);
                    // Start the next round earlier if another step is due earlier, so that the failed step does not
                    // delay the other step.
                    let wait = due.map_or(full, |due| due.clamp(BACKOFF.first, full));
                    tracing::warn!(%error, "policy lifecycle step failed; retrying in {wait:?}");
                    catalogue.waits_for(error.to_string());
                    Some(wait)
                }
            };
            let crowd = async {
                catalogue.ledger().changed().await;
                tokio::time::sleep(CROWD).await;
            };
            tokio::select! {
                () = lifecycle.changed() => {}
                () = crowd => {}
                () = tokio::time::sleep(wait.unwrap_or(Duration::MAX)), if wait.is_some() => {}
            }
        }
    };
    let stopped: Option<std::convert::Infallible> = Box::pin(stop.run_until_cancelled(work)).await;
    if stopped.is_none() {
        lifecycle.lay_down().await;
    }
}
