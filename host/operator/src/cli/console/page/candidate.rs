//! The effect of settings on all objects, before a user installs them. The page changes nothing in the cluster.

use std::{collections::BTreeSet, sync::Arc};

use maud::{Markup, html};

use super::{
    address::Address,
    cells,
    document::{Page, plain},
    effect::{heading, unusable},
};
use crate::{
    cli::{
        console::model::Model,
        policy::{CandidateEffect, candidate_effect},
    },
    error_text::with_causes,
};

/// The text of a new form.
const EMPTY: &str = "name: agent\nscope: {namespaces: []}\nsettings:\n  image: registry.example.org/agent:2\n";
/// The maximum number of rows of the result.
const ROWS: usize = 200;

/// Builds the page. Without `text`, the page shows an example.
pub(super) async fn page(model: &Arc<Model>, text: Option<&str>) -> Page {
    let shown = text.map_or_else(|| EMPTY.to_owned(), |text| text.replace("\r\n", "\n"));
    let result = match text {
        None => None,
        Some(_) => Some(match effect(model, &shown).await {
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

async fn effect(model: &Arc<Model>, text: &str) -> anyhow::Result<CandidateEffect> {
    let mut gathered = model.gathered();
    for (_, kept) in model.claimed(|_, _| true) {
        gathered.add(&kept.object);
    }
    candidate_effect(&mut gathered, &model.serving(), model.cluster(), text).await
}

/// Returns the names of the policies that answer.
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
            @if !problems.is_empty() { (cells::table("Objects with problems", ["Object", "Problem"], problems)) }
            @if !shown.is_empty() {
                (cells::table("Changes of the children", ["Object", "Child", "Field", "Before", "After"], shown))
            }
            @if rows.len() > ROWS { p.note { "… and " (rows.len() - ROWS) " more changes." } }
        }
    }
}
