//! The rules of the reconcile loop, one test a rule.
//!
//! Tests are named after the rows of the checklist in `checklist.md`: `a1_…` shows row A1. They run on the embedded
//! cluster. With `KAOS_TEST_KUBECONFIG` set, the tests that can run on a real control plane do so instead.
//!
//! | module | rows |
//! |---|---|
//! | `healing` | A: the operator repairs children |
//! | `passes` | A: how passes run |
//! | `order` | A12, B9: the order of creation does not matter |
//! | `rollout` | B: a change reaches the pods exactly once |
//! | `ownership` | C: which objects the operator may touch |
//! | `texts` | A15: characters that YAML would change |
//! | `accounts` | a ServiceAccount for each Agent |
//! | `protection` | SecurityPolicies and NetworkPolicies of objects |
//! | `stores` | `MemoryStores`: claims, and the ModelAPI that they wait for |
//! | `unset` | B11: fields that a user removes from an object |
//! | `takeover` | C8: objects that the Go operator left |
//! | `status` | D: the status |
//! | `progress` | D: the conditions that other tools understand |
//! | `behind` | D: the status while the running generation is not the newest |
//! | `errors` | E: errors, and how long they last |
//! | `backoff` | E: when the operator retries |
//! | `deletion` | F: finalizers |
//! | `needs` | E3, E4, G1: needs of policies |
//! | `refusals` | E: requests that the API server rejects, and the remedy |
//! | `deletion` | F: finalizers |
//! | `operations` | G: watches, Events, metrics, readiness |
//! | `replicas` | G4: only one of several operators writes |
//! | `rights` | G3, G7, E8: the operator's rights |
//! | `costs` | writes, reads, silence |
//! | `bad_input` | malformed objects, deleted definitions, terminating namespaces |
//! | `recorded` | the recorded cases that need a running operator |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]
#![allow(clippy::float_cmp, reason = "metrics count in floats")]

mod accounts;
mod backoff;
mod bad_input;
mod behind;
mod costs;
mod deletion;
mod errors;
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
mod replicas;
mod rights;
mod rollout;
mod status;
mod stores;
mod support;
mod takeover;
mod texts;
mod unset;
