//! The effect of settings on all objects, before a user installs the settings. The page changes nothing in the cluster.

use std::{collections::BTreeSet, sync::Arc};

use maud::{Markup, html};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    address::Address,
    cells,
    document::{Page, plain},
    effect::{ROWS, heading, unusable},
};
use crate::{
    cli::{
        console::model::Model,
        policy::{CandidateEffect, candidate_effect},
    },
    error_text::with_causes,
};

/// The example in a form that the user has not edited yet.
const EMPTY: &str = "name: agent\nscope: {namespaces: []}\nsettings:\n  image: registry.example.org/agent:2\n";

/// Builds the page. Without `text`, the page shows an example. A cancelled token ends the computation.
pub(super) async fn page(model: &Arc<Model>, text: Option<(&str, &CancellationToken)>) -> Page {
    let shown = text.map_or_else(|| EMPTY.to_owned(), |(text, _)| text.replace("\r\n", "\n"));
    let result = match text {
        None => None,
        Some((_, stop)) => Some(match effect(model, &shown, stop).await {
            Ok(effect) => shown_effect(&effect),
            Err(error) => unusable("The settings cannot be used", &[with_causes(error.as_ref())]),
        }),
    };
    let fixed = html! {
        p { a href=(Address::Policies) { "Back to the policies" } }
        @if let Some(result) = result { (result) }
        form.edit method="post" action=(Address::Candidate) {
            label for="yaml" { "The settings, as in policy.yaml" }
            p.note #yaml-note {
                "Write settings for one of these policies: " (plain(&names(model))) ". Without namespaces, the settings "
                "apply everywhere. The page computes the effect on all objects that you can see. Nothing in the cluster "
                "changes."
            }
            textarea #yaml name="yaml" rows="14" spellcheck="false" autocomplete="off" aria-describedby="yaml-note" { (shown) }
            button type="submit" { "Show the effect" }
        }
    };
    Page::new("Effect of settings", "/policies", fixed, Vec::new())
}

async fn effect(model: &Arc<Model>, text: &str, stop: &CancellationToken) -> anyhow::Result<CandidateEffect> {
    let mut gathered = model.gathered();
    let all: Vec<Arc<Value>> = model.with_claimed(|all| all.map(|(_, kept)| Arc::clone(&kept.object)).collect());
    for object in &all {
        gathered.add(object);
    }
    candidate_effect(&mut gathered, &model.serving(), model.cluster(), text, stop).await
}

/// Returns the names of the policies that answer in the whole cluster.
fn names(model: &Model) -> String {
    let serving = model.serving();
    let kinds = serving.snapshot.kinds().filter_map(|(_, answers)| answers.usual(""));
    let names: BTreeSet<&str> =
        kinds.flat_map(|kind| kind.policies()).map(|policy| policy.id().name.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

fn shown_effect(CandidateEffect { summary, rows, problems }: &CandidateEffect) -> Markup {
    let shown = &rows[..rows.len().min(ROWS)];
    html! {
        section.result aria-labelledby="result-heading" {
            (heading("Effect of the settings"))
            @for line in summary.lines() { p { (plain(line)) } }
            @if !problems.is_empty() {
                @let shown = &problems[..problems.len().min(ROWS)];
                (cells::table("Objects with problems", ["Object", "Problem"], shown))
                (cells::more(shown.len(), problems.len(), "objects with problems"))
            }
            @if !shown.is_empty() {
                (cells::table("Changes of the children", ["Object", "Child", "Field", "Before", "After"], shown))
            }
            (cells::more(shown.len(), rows.len(), "changes"))
        }
    }
}
