//! Policies that somebody installs while the operator runs: from ConfigMaps, through the gate, into service, and out of it
//! again when they fail.
//!
//! One task does it all but checks and questions, one step after another, off the path of passes. It is level-triggered: it looks at what there is
//! and at what it wrote down, and takes the next step.
//!
//! | module | what it does |
//! |---|---|
//! | `sources` | which packages there are |
//! | `records` | PolicyRevisions: what became of each |
//! | `store` | keeps the bytes of what was let in |
//! | `gatekeeper` | every step from a package to a policy |
//! | `checks` | packages that are being checked, beside everything else |
//! | `questions` | what is asked about rights, beside everything else |
//! | `rights` | whether the operator may do what a policy claims |
//! | `claims` | since when a revision claims its place |
//! | `roster` | which revisions are to serve, and what comes of that |
//! | `unfit` | why what is to serve does not go together |
//! | `fitted` | keeps the settings of the operator's own ConfigMap that fitted last |
//! | `turns` | whose package is checked next |
//! | `lifecycle` | from state to state |
//! | `news` | Events |
//! | `tools`, `step_error`, `pace` | what all of it works with, what can fail, and how often it is tried |

mod checks;
mod claims;
mod fitted;
mod gatekeeper;
mod lifecycle;
mod news;
mod pace;
mod questions;
mod records;
mod rights;
mod roster;
mod sources;
mod step_error;
mod store;
mod tools;
mod turns;
mod unfit;

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

pub(crate) use claims::age_of;
pub use gatekeeper::Gatekeeper;
pub(crate) use lifecycle::is_withheld;
pub(crate) use records::{NOT_LOADED, RETRY, retry_command, revision_resource};
pub(crate) use roster::{Content, Entry, Roster, Unfit};
pub(crate) use step_error::StepError;
pub use tools::Installing;
pub(crate) use tools::Tools;

use self::{lifecycle::Lifecycle, pace::PATIENCE, records::Records, sources::Sources, store::Store};

/// How long after a report of a pass it is looked at: passes come in crowds.
const CROWD: Duration = Duration::from_secs(1);

/// Follows packages until told to stop.
pub(crate) async fn run(tools: Tools, installing: Installing, stop: CancellationToken) {
    let namespace = tools.duties.operator_namespace.clone();
    let everywhere = installing.in_namespaces;
    let sources = Sources::follow(&tools.client, &tools.watch, &namespace, everywhere);
    let records = Records::follow(&tools.client, &tools.watch, &namespace);
    let store = Store::new(tools.client.clone(), &namespace);
    let catalogue = Arc::clone(&tools.catalogue);
    let mut lifecycle = Lifecycle::new(tools, installing, sources, records, store);
    let mut patience = PATIENCE.0;
    let work = async {
        loop {
            let (due, settled) = lifecycle.settle().await;
            let wait = match settled {
                Ok(()) => {
                    patience = PATIENCE.0;
                    due
                }
                Err(error) => {
                    tracing::warn!(%error, "policies cannot be looked after, and are looked at again");
                    catalogue.waits_for(error.to_string());
                    // What is due does not wait for what cannot be done.
                    let wait = due.map_or(patience, |due| due.clamp(PATIENCE.0, patience));
                    patience = (patience * 2).min(PATIENCE.1);
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
