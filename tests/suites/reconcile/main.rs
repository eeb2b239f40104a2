//! What the reconcile loop must do, one test a rule.
//!
//! Tests are named after the rows of the checklist that the operator was specified by: `a1_…` shows row A1. They run on the
//! embedded cluster; with `KAOS_TEST_KUBECONFIG` set, those that can run on a real control plane instead.
//!
//! | module | rows |
//! |---|---|
//! | `healing` | A: what is broken heals |
//! | `passes` | A: how passes are made |
//! | `order` | A12, B9: in whatever order things are applied |
//! | `rollout` | B: changes reach the pods, once |
//! | `ownership` | C: whose objects are touched |
//! | `texts` | A15: characters that YAML would change |
//! | `accounts` | a ServiceAccount for each Agent |
//! | `stores` | stores of memories: claims, and what is waited for |
//! | `unset` | B11: what is removed from an object |
//! | `takeover` | C8: objects that the Go operator left |
//! | `status` | D: what users are told |
//! | `behind` | D: what is told while the newest generation does not run |
//! | `errors` | E: what goes wrong, and for how long |
//! | `backoff` | E: when it is tried again |
//! | `deletion` | F: finalizers |
//! | `needs` | E3, E4, G1: what policies ask to see |
//! | `refusals` | E: what the API server does not do, and what helps |
//! | `deletion` | F: finalizers |
//! | `operations` | G: watches, Events, metrics, readiness |
//! | `replicas` | G4: of several operators one writes |
//! | `rights` | G3, G7, E8: what the operator may do |
//! | `costs` | writes, reads, silence |
//! | `bad_input` | malformed objects, definitions that go, namespaces that end |
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
