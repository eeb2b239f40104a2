//! Policies that are installed while the operator runs: from a ConfigMap into service, and out of it again.
//!
//! | module | what it shows |
//! |---|---|
//! | `swapping` | what is applied comes into service, and what does not change anything writes nothing |
//! | `refusing` | what is wrong is refused with its reason, and disturbs nothing |
//! | `finalizers` | finalizers that settings name, when those change or the operator does |
//! | `fitted` | the operator's own settings that fitted last, kept for the next process |
//! | `last_good` | what fails in service is put aside, and what served before serves |
//! | `put_aside` | what was put aside stays so until somebody asks |
//! | `rehearsed` | what is told when the API server does not let a plan be tried |
//! | `refusals` | what a refusal leads to, and what a policy may ask for |
//! | `interrupted` | an operator that ends while it checks a package |
//! | `places` | namespaces, pins, precedence |
//! | `isolation` | what the own policy of one namespace does to another |
//! | `tenants` | which ConfigMaps of a namespace are read, and what becomes of those that cannot be |
//! | `assembled` | packages in pieces, several kinds in one component, overlays |
//! | `monitored` | what metrics say of policies that do not do what they should |
//! | `packages` | half-written, emptied, renamed and deleted ConfigMaps |
//! | `withheld` | what serves and cannot be loaded any more |
//! | `unwritable` | a record that cannot be written or removed, beside others that can |
//! | `starting` | an operator starts where policies take their time to load |
//! | `erased` | what serves and whose record, or what is kept of it, somebody deletes |
//! | `under_load` | a policy that changes every second while many Agents are edited |
//! | `candidates` | editions of the Agents' policy, good ones and broken ones |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod assembled;
mod candidates;
mod erased;
mod finalizers;
mod fitted;
mod interrupted;
mod isolation;
mod last_good;
mod monitored;
mod packages;
mod places;
mod put_aside;
mod refusals;
mod refusing;
mod rehearsed;
mod starting;
mod support;
mod swapping;
mod tenants;
mod tried;
mod under_load;
mod unwritable;
mod withheld;
