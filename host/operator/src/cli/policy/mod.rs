//! `policy`: the commands for writing, checking and installing policies, with one file for each command.

mod answering;
mod approve;
mod bench;
#[cfg(feature = "authoring")]
mod build;
mod check;
mod chunks;
mod concerned;
mod conform;
#[cfg(feature = "authoring")]
mod diff;
#[cfg(feature = "console")]
mod edit;
mod explain;
#[cfg(feature = "console")]
mod explanation;
mod follow;
mod gone;
mod held;
mod in_force;
mod inspect;
mod install;
#[cfg(test)]
mod leaks;
mod left_settings;
mod list;
mod live_object;
mod named;
mod named_objects;
#[cfg(feature = "completion")]
mod names;
#[cfg(feature = "authoring")]
mod new;
#[cfg(not(feature = "authoring"))]
mod not_built_in;
mod pack;
mod package_name;
mod plan;
mod preview;
mod push;
mod record;
mod remove;
mod rendered;
mod replay;
mod revisions;
mod rollback;
mod serving;
mod shipment;
mod steer;
#[cfg(feature = "authoring")]
mod test_runner;
#[cfg(feature = "authoring")]
mod wasm;

pub(super) use answering::Installed;
#[cfg(feature = "console")]
pub(super) use edit::{EditEffect, Edited, edit_effect, edited, shown_for_edit};
#[cfg(feature = "console")]
pub(super) use explanation::{Explanation, explanation};
#[cfg(feature = "demo")]
pub(super) use follow::Until;
pub(super) use gone::forget_gone;
pub(super) use held::Beside;
pub(super) use in_force::claimed;
#[cfg(feature = "schema")]
pub(super) use list::RevisionAnswer;
#[cfg(feature = "completion")]
pub(super) use names::installed;
#[cfg(feature = "console")]
pub(super) use plan::{CandidateEffect, candidate_effect};
#[cfg(feature = "demo")]
pub(super) use push::ship;
pub(super) use serving::serving;
#[cfg(feature = "console")]
pub(super) use serving::{ServingPolicies, serving_policies};

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{
    HELD_BACK, HOME, ObjectWord, OutputFormat, UNUSABLE, compatibility, connection, connection::on_cluster,
    exit::or_held_back, facts, format, grantable, name, namespace, object_word, objects, one_namespace, origins,
    output, rbac::scope, settings, table, variables::variables,
};
use output::Output;

use crate::catalogue::installed::RolloutVerb;

/// The commands for policies.
#[derive(Debug, Args)]
pub(super) struct Policy {
    #[command(subcommand)]
    verb: PolicyVerb,
}

#[derive(Debug, Subcommand)]
enum PolicyVerb {
    /// Print facts about a policy: digest, size, world, claims, settings, imports
    Inspect(inspect::Inspect),
    /// Run the checks that a policy must pass before it serves, and print each step
    Check(check::Check),
    /// Check a policy with its samples and with random objects; can print a JUnit report for CI
    Conform(conform::ConformVerb),
    /// Measure the time, fuel and memory of a policy's passes, the time of its compilation, and its size
    Bench(bench::Bench),
    /// Print a policy, or settings for a policy, as ConfigMaps, ready for `kubectl apply --server-side -f -`
    Pack(pack::Pack),
    /// Print the changes that a policy, settings for a policy, or another preset would make
    #[command(mut_arg("file", |file| file.required_unless_present_any(["policy", "compatibility"])))]
    Plan(Box<plan::Plan>),
    /// Print the effect that the operator computed for an installed package before the package serves
    Preview(preview::Preview),
    /// Let a package serve that the operator holds because of its effect
    Approve(approve::Approve),
    /// Pause the rollout of a package that serves in steps
    Pause(steer::Steer),
    /// Resume a paused rollout; if the operator paused because of missing evidence, accept the step
    Resume(steer::Steer),
    /// Move all objects to a package that serves in steps, and end its rollout
    Promote(steer::Steer),
    /// Return all objects of a rollout to the policies that served before, and quarantine the package
    Return(steer::Steer),
    /// Install a policy, or settings for a policy, and wait until the package serves
    Push(push::Push),
    /// List the installed policies and the states of their revisions
    List(list::List),
    /// Explain one object: which policies answer for the object and why, which objects these policies read, and the
    /// origin of each variable and of each value in the children
    Explain(explain::Explain),
    /// Write a decision of the policies about one object into a file, with all inputs and without secret values
    Record(Box<record::Record>),
    /// Repeat recorded decisions without a cluster, with the recorded policies or with a candidate
    Replay(replay::Replay),
    /// Restore an earlier revision of a policy
    Rollback(rollback::Rollback),
    /// Remove a policy, or settings for a policy, from the cluster, and print which policies serve afterwards
    Remove(remove::Remove),
    /// Create a project for a policy; the project builds, and its tests pass
    #[cfg(feature = "authoring")]
    New(new::New),
    /// Print how a project of `policy new --from` differs from the default policy that this operator ships
    #[cfg(feature = "authoring")]
    Diff(diff::Diff),
    /// Convert a core module to a component
    #[cfg(feature = "authoring")]
    Build(build::Build),
    /// Run a test executable built for wasm32-wasip1; cargo's `runner` for policy tests
    #[cfg(feature = "authoring")]
    TestRunner(test_runner::TestRunner),
    /// Create a project for a policy; this program was built without the command
    #[cfg(not(feature = "authoring"))]
    #[command(hide = true)]
    New(not_built_in::NotBuiltIn),
    /// Print how a project differs from a default policy; this program was built without the command
    #[cfg(not(feature = "authoring"))]
    #[command(hide = true)]
    Diff(not_built_in::NotBuiltIn),
    /// Convert a core module to a component; this program was built without the command
    #[cfg(not(feature = "authoring"))]
    #[command(hide = true)]
    Build(not_built_in::NotBuiltIn),
    /// Run a test executable; this program was built without the command
    #[cfg(not(feature = "authoring"))]
    #[command(hide = true)]
    TestRunner(not_built_in::NotBuiltIn),
}

impl Policy {
    /// Runs the command.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let Self { verb } = self;
        match verb {
            PolicyVerb::Inspect(inspect) => inspect.run(out),
            PolicyVerb::Check(check) => check.run(out),
            PolicyVerb::Conform(conform) => conform.run(out),
            PolicyVerb::Bench(bench) => bench.run(out),
            PolicyVerb::Pack(pack) => pack.run(out),
            PolicyVerb::Plan(plan) => Ok(plan.run(out)),
            PolicyVerb::Preview(preview) => preview.run(out),
            PolicyVerb::Approve(approve) => approve.run(out),
            PolicyVerb::Pause(steer) => steer.run(RolloutVerb::Pause, out),
            PolicyVerb::Resume(steer) => steer.run(RolloutVerb::Resume, out),
            PolicyVerb::Promote(steer) => steer.run(RolloutVerb::Promote, out),
            PolicyVerb::Return(steer) => steer.run(RolloutVerb::Return, out),
            PolicyVerb::Push(push) => push.run(out),
            PolicyVerb::List(list) => list.run(out),
            PolicyVerb::Explain(explain) => explain.run(out),
            PolicyVerb::Record(record) => record.run(out),
            PolicyVerb::Replay(replay) => Ok(replay.run(out)),
            PolicyVerb::Rollback(rollback) => rollback.run(out),
            PolicyVerb::Remove(remove) => remove.run(out),
            #[cfg(feature = "authoring")]
            PolicyVerb::New(new) => new.run(),
            #[cfg(feature = "authoring")]
            PolicyVerb::Diff(diff) => diff.run(out),
            #[cfg(feature = "authoring")]
            PolicyVerb::Build(build) => build.run(),
            #[cfg(feature = "authoring")]
            PolicyVerb::TestRunner(runner) => runner.run(),
            #[cfg(not(feature = "authoring"))]
            PolicyVerb::New(_) | PolicyVerb::Diff(_) | PolicyVerb::Build(_) | PolicyVerb::TestRunner(_) => {
                not_built_in::refuse()
            }
        }
    }
}
