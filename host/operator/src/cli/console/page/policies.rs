//! The policies: which policy answers for each kind, the revisions with their states, and the effect that the operator
//! computed for a revision.

use std::sync::Arc;

use kaos_crds::{PolicyPreview, PolicyRevisionStatus, PreviewPath, PreviewProblem, RevisionState};
use kaos_policy::contract::{Reference, ResourceType};
use maud::{Markup, html};
use serde_json::Value;

use super::{
    address::Address,
    cells,
    document::{Page, Part, plain},
};
use crate::{
    catalogue::Answers,
    cli::console::model::{Interest, Model},
    input::Identity,
};

/// Builds the page with all policies.
pub(super) fn page(model: &Arc<Model>) -> Page {
    let revisions = model.revisions();
    let rows: Vec<[Markup; 7]> = revisions.iter().map(|record| row(record)).collect();
    let list = html! {
        section aria-labelledby="revisions-heading" {
            h2 #revisions-heading { "Revisions" }
            @if rows.is_empty() {
                p { "No policy is installed that you can see. The default policies answer." }
            } @else {
                (cells::table_of(
                    "Revisions of installed packages",
                    ["Revision", "State", "Policy", "Version", "Source", "Objects", "Message"],
                    rows,
                ))
            }
        }
    };
    let held = revisions.iter().filter(|record| status(record).state == RevisionState::Held).count();
    let summary = html! {
        p.summary data-announce {
            (cells::counted(revisions.len(), "revision", "revisions"))
            @if held > 0 { ", of which " (held) " wait for an approval" }
            "."
        }
    };
    let parts = vec![Part::new("summary", summary), Part::new("kinds", kinds(model)), Part::new("revisions", list)];
    let fixed = html! { p { a href=(Address::Candidate) { "See the effect of settings" } } };
    // With `lists`, a revision that appears or disappears also wakes the page.
    let interest = Interest { lists: true, ..Interest::default() };
    Page::new("Policies", "/policies", fixed, parts).showing(interest)
}

/// Builds the page of one revision.
pub(super) fn revision(model: &Arc<Model>, name: &str) -> Page {
    let found = model.revisions().into_iter().find(|record| record["metadata"]["name"] == name);
    let Some(record) = found else {
        return Page::not_found(&format!("PolicyRevision {name} does not exist, or you have no right to see it."));
    };
    let status = status(&record);
    let parts = vec![
        Part::new("state", state(&record, &status)),
        Part::new("effect", status.preview.as_ref().map_or_else(no_effect, effect)),
    ];
    let fixed = html! { p { a href=(Address::Policies) { "Back to the policies" } } };
    let interest = Interest { objects: [identity(&record)].into(), ..Interest::default() };
    Page::new(format!("PolicyRevision {name}"), "/policies", fixed, parts).showing(interest)
}

fn identity(record: &Value) -> Identity {
    Identity::from(&Reference::of_object(record))
}

fn status(record: &Value) -> PolicyRevisionStatus {
    serde_json::from_value(record["status"].clone()).unwrap_or_default()
}

fn source(record: &Value) -> String {
    let text = |field: &str| record["spec"]["source"][field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("configMap"))
}

fn row(record: &Value) -> [Markup; 7] {
    let (status, name) = (status(record), record["metadata"]["name"].as_str().unwrap_or_default());
    let text = |text: &Option<String>| html! { (plain(text.as_deref().unwrap_or("–"))) };
    [
        html! { a href=(Address::Revision(name.to_owned())) { (plain(name)) } },
        word(status.state),
        text(&status.policy),
        text(&status.version),
        html! { (plain(&source(record))) },
        html! { @if let Some(objects) = status.objects { (objects) } @else { "–" } },
        text(&status.message),
    ]
}

/// Shows the state of a revision: a sign and a word.
fn word(state: RevisionState) -> Markup {
    let (class, sign) = match state {
        RevisionState::Active | RevisionState::Yielding => ("good", "✓"),
        RevisionState::Superseded => ("unknown", "–"),
        RevisionState::Pending | RevisionState::Checking | RevisionState::Previewing => ("waits", "…"),
        RevisionState::Held => ("waits", "!"),
        RevisionState::Refused | RevisionState::NotPermitted | RevisionState::Conflict | RevisionState::Quarantined => {
            ("bad", "✗")
        }
    };
    html! { span class={ "state " (class) } { span.sign aria-hidden="true" { (sign) } " " (state.name()) } }
}

/// Shows which policy answers for each kind in the whole cluster.
fn kinds(model: &Model) -> Markup {
    let serving = model.serving();
    let row = |(of, answers): (&ResourceType, &Answers)| {
        let usual = answers.usual("");
        let policies = usual.iter().flat_map(|kind| kind.policies()).map(|policy| policy.id().to_string());
        let revisions: Vec<String> = answers.revisions().map(ToString::to_string).collect();
        let revisions = if revisions.is_empty() { "default policies only".to_owned() } else { revisions.join(", ") };
        [of.kind.clone(), policies.collect::<Vec<_>>().join(", then "), revisions]
    };
    let rows: Vec<[String; 3]> = serving.snapshot.kinds().map(row).collect();
    html! {
        section aria-labelledby="kinds-heading" {
            h2 #kinds-heading { "Which policy answers" }
            (cells::table("Policies by kind", ["Kind", "Policy in most namespaces", "Installed revisions"], &rows))
        }
    }
}

fn state(record: &Value, status: &PolicyRevisionStatus) -> Markup {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
    let rows = [
        ["Policy".to_owned(), text(&status.policy)],
        ["Version".to_owned(), text(&status.version)],
        ["Source".to_owned(), source(record)],
        ["Kinds".to_owned(), status.kinds.join(", ")],
        ["Predecessor".to_owned(), text(&status.predecessor)],
        ["Since".to_owned(), text(&status.since)],
        ["Reason".to_owned(), text(&status.reason)],
    ];
    html! {
        p.summary data-announce { (word(status.state)) @if let Some(message) = &status.message { " " (plain(message)) } }
        @if let Some(approved) = &status.approved { p { "Approved by " (plain(&approved.by)) "." } }
        (cells::table("Facts about the revision", ["Fact", "Value"], &rows))
    }
}

fn no_effect() -> Markup {
    html! {
        section aria-labelledby="effect-heading" {
            h2 #effect-heading { "Effect" }
            p {
                "The operator computed no effect for this revision. It does so if the package or the operator sets limits "
                "for the effect."
            }
        }
    }
}

fn effect(preview: &PolicyPreview) -> Markup {
    let PolicyPreview { summary, paths, more_paths, problems, more_problems, inputs, .. } = preview;
    let path = |path: &PreviewPath| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let first = path.examples.first().cloned().unwrap_or_default();
        [
            path.kind.clone(),
            text(&path.path),
            path.change.clone(),
            path.count.to_string(),
            text(&first.before),
            text(&first.after),
            first.object,
        ]
    };
    let problem = |it: &PreviewProblem| [it.object.clone(), it.problem.clone(), it.message.clone()];
    let (paths, problems): (Vec<_>, Vec<_>) =
        (paths.iter().map(path).collect(), problems.iter().map(problem).collect());
    html! {
        section aria-labelledby="effect-heading" {
            h2 #effect-heading { "Effect" }
            p { (plain(summary)) "." }
            @if !paths.is_empty() {
                (cells::table(
                    "Changes of children",
                    ["Kind", "Field", "Change", "Children", "Before", "After", "Such as"],
                    &paths,
                ))
            }
            @if *more_paths > 0 { p.note { "… and " (more_paths) " more changes." } }
            @if !problems.is_empty() {
                (cells::table("Objects with problems", ["Object", "Problem", "Message"], &problems))
            }
            @if *more_problems > 0 { p.note { "… and " (more_problems) " more objects with problems." } }
            @if let Some(at) = &inputs.at { p.note { "Computed at " (plain(at)) " from the objects of the cluster." } }
        }
    }
}
