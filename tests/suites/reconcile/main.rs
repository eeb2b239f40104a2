//! Tests the rules of the reconcile loop. Each test checks a single rule.
//!
//! The name of a test begins with the row of `checklist.md` that the test checks: `a1_…` checks row A1. The tests run
//! on the embedded cluster. If `KAOS_TEST_KUBECONFIG` is set, tests that also work on a real control plane run there
//! instead.
//!
//! | module | rows |
//! |---|---|
//! | `healing` | A: the operator repairs children |
//! | `passes` | A: how passes run |
//! | `fields` | A16: which changes of a needed object cause a pass |
//! | `order` | A12, B9: the order of creation does not matter |
//! | `rollout` | B: a change causes exactly one rollout of the affected pods |
//! | `ownership` | C: which objects the operator may change |
//! | `texts` | A15, D13: characters that YAML would change, and characters that control a terminal |
//! | `accounts` | a ServiceAccount for each Agent |
//! | `stores` | `MemoryStores`: their volume claims, and the ModelAPI for which they wait |
//! | `dependencies` | Agents whose dependencies are missing or not ready, or that a user creates again |
//! | `protection` | SecurityPolicies and NetworkPolicies of objects |
//! | `grants` | `AccessGrants`, and the data of the decision point |
//! | `decision_point` | the objects that the operator keeps for the decision point |
//! | `unset` | B11: fields that a user removes from an object |
//! | `unset_each` | B11: each optional field of the recorded cases, set and removed |
//! | `takeover` | C8: objects that the Go operator left |
//! | `status` | D: the status |
//! | `progress` | D: the conditions that other tools understand |
//! | `behind` | D: the status while the running pods do not have the newest generation |
//! | `errors` | E: errors, and how the operator recovers |
//! | `rejected` | E2: children that the API server rejects, and when the operator tries them again |
//! | `backoff` | E: when the operator retries |
//! | `deletion` | F: finalizers |
//! | `needs` | E3, E4, G1: needs of policies |
//! | `refusals` | E: requests that the API server rejects, and the remedy in the status |
//! | `operations` | G: watches, Events, metrics, readiness |
//! | `replicas` | G4: only one of several replicas writes |
//! | `settled` | G9: a restart asks no policy about settled objects |
//! | `rights` | G3, G7, E8: the operator's rights |
//! | `costs` | the number of writes and reads, and no requests in a steady state |
//! | `bad_input` | malformed objects, deleted CustomResourceDefinitions, terminating namespaces |
//! | `recorded` | the recorded cases that need a running operator |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]
#![allow(clippy::float_cmp, reason = "metrics count in floats")]

mod accounts;
mod backoff;
mod bad_input;
mod behind;
mod costs;
mod decision_point;
mod deletion;
mod dependencies;
mod errors;
mod fields;
mod grants;
mod healing;
mod needs;
mod operations;
mod order;
mod ownership;
mod passes;
mod progress;
mod protection;
mod recorded;
mod refusals;
mod rejected;
mod replicas;
mod rights;
mod rollout;
mod settled;
mod status;
mod stores;
mod support;
mod takeover;
mod texts;
mod unset;
mod unset_each;
