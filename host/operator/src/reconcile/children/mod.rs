//! The children of an object: from the plan's manifests to the objects in the cluster.
//!
//! | step | module |
//! |---|---|
//! | all children in order, and what hinders them | `apply` |
//! | what the pass knows of a child | `sight` |
//! | one child: look, decide, write | `child` |
//! | applies and repairs of an existing child | `known`, `repair` |
//! | the decision about one child, without I/O | `decide`, `drift` |
//! | manifests in their final form | `final_manifest` |
//! | what is remembered of children between passes | `memory` |
//! | managed fields; fields that an earlier plan left without a manager | `managed_fields`, `leftover_fields` |
//! | fields that never change while a child exists | `immutable` |
//! | manifests that the server rejected, and their retries | `rejected` |
//! | the limit on repairs | `write_limit` |
//! | replicas that were set before the takeover | `replicas` |
//! | children of a deleted owner of the same name | `stale_children` |
//! | deletion of unplanned children; workloads that stay for a while | `prune`, `handover` |

pub(super) mod apply;
pub(super) mod child;
pub(super) mod decide;
pub(super) mod drift;
pub(super) mod final_manifest;
pub(super) mod handover;
pub(super) mod immutable;
mod known;
pub(super) mod leftover_fields;
pub(super) mod managed_fields;
pub(super) mod memory;
pub(super) mod prune;
pub(super) mod rejected;
mod repair;
mod replicas;
pub(super) mod sight;
mod stale_children;
pub(super) mod write_limit;
