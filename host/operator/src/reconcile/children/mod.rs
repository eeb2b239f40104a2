//! Makes the children of an object match the plan's manifests.
//!
//! | step | module |
//! |---|---|
//! | applies all children in order, and collects the reasons why children differ | `apply` |
//! | finds the live child, from the watch or with a read | `sight` |
//! | decides about one child, and writes it | `child` |
//! | applies and repairs an existing child | `known`, `repair` |
//! | computes the decision about one child, without I/O | `decide`, `drift` |
//! | turns planned manifests into the manifests to apply | `final_manifest` |
//! | remembers facts about children between passes | `memory` |
//! | handles managed fields; finds fields that an earlier plan left without a manager | `managed_fields`, `leftover_fields` |
//! | explains rejections about immutable fields | `immutable` |
//! | remembers manifests that the server rejected, and when to retry them | `rejected` |
//! | limits the writes of each child | `write_limit` |
//! | keeps replicas that a client set before the takeover | `replicas` |
//! | deletes the children of an earlier, deleted object with the same name as this object | `stale_children` |
//! | deletes unplanned children; keeps old workloads until new ones serve | `prune`, `handover` |

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
