//! Tests policies that users install and remove while the operator runs.
//!
//! | module | subject of its tests |
//! |---|---|
//! | `swapping` | an applied package starts to serve; an edit without an effect causes no write |
//! | `refusing` | the gate refuses an invalid package with a reason, and other policies keep serving |
//! | `finalizers` | finalizers from settings, when the settings or the operator change |
//! | `fitted` | the operator's last good settings, stored for the next process |
//! | `last_good` | a policy that fails on its objects goes into quarantine, and its predecessor serves |
//! | `put_aside` | a quarantine lasts until a user requests a retry |
//! | `rehearsed` | the status when the API server rejects the dry run of a plan |
//! | `refusals` | the effects of a refusal, and which needs a policy may have |
//! | `interrupted` | an operator that ends while it checks a package |
//! | `places` | namespaces, pins, precedence |
//! | `isolation` | a namespace's own policy, which must not affect other namespaces |
//! | `budgets` | a namespace whose objects wait because a budget is used up |
//! | `tenants` | which ConfigMaps of a namespace the operator reads, and what happens if it cannot read one |
//! | `assembled` | packages in chunks, several kinds in one component, overlays of variables |
//! | `amended` | overlays of plans |
//! | `monitored` | the metrics about failing policies |
//! | `packages` | half-written, emptied, renamed and deleted ConfigMaps |
//! | `previewed` | the effect of a package before it serves, and the limits that hold the package |
//! | `held` | approvals, the change back to an earlier edition, and held packages that wait for a place |
//! | `progress` | the conditions that other tools understand |
//! | `own_upgrade` | another version of the operator with other default policies |
//! | `own_upgrade_ends` | an operator that ends at any write of such an upgrade |
//! | `staged` | packages that serve in steps |
//! | `staged_beside` | other packages that come, wait and go while a package serves in steps |
//! | `staged_evidence` | what counts as evidence of a rollout |
//! | `staged_ends` | an operator that ends at any write of a rollout or of a return |
//! | `staged_returns` | a return while the package's ConfigMap already contains something else |
//! | `staged_lost` | lost records, bytes and definitions while a package serves in steps |
//! | `withheld` | an active policy that can no longer be loaded |
//! | `unwritable` | a record that the operator cannot write or remove, which must not delay other packages |
//! | `scripted` | packages with a script instead of a component |
//! | `starting` | an operator starts while policies take long to load |
//! | `erased` | the deletion of the record or the stored bytes of an active revision |
//! | `under_load` | a policy that changes every second while users edit many Agents |
//! | `candidates` | good and broken editions of the Agents' policy |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod amended;
mod assembled;
mod budgets;
mod candidates;
mod erased;
mod finalizers;
mod fitted;
mod fitting;
mod held;
mod interrupted;
mod isolation;
mod last_good;
mod monitored;
mod own_upgrade;
mod own_upgrade_ends;
mod packages;
mod places;
mod previewed;
mod progress;
mod put_aside;
mod refusals;
mod refusing;
mod rehearsed;
mod scripted;
mod staged;
mod staged_beside;
mod staged_ends;
mod staged_evidence;
mod staged_lost;
mod staged_returns;
mod starting;
mod support;
mod swapping;
mod tenants;
mod tried;
mod under_load;
mod unwritable;
mod withheld;
