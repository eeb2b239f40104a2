//! The effect of an edit of an object, before the user makes the edit. The page changes nothing in the cluster.

use std::sync::Arc;

use maud::{Markup, html};

use super::{
    address::Address,
    cells,
    document::{Page, plain},
};
use crate::{
    cli::{
        console::model::Model,
        policy::{EditEffect, Edited, edit_effect, edited, shown_for_edit},
    },
    error_text::with_causes,
    input::Identity,
    masking::MASK,
};

/// The maximum number of rows in the table with the effect.
pub(super) const ROWS: usize = 200;
const WRONG: &str = "The edit cannot be used";

/// Builds the page. `text` is the edit. Without an edit, the page shows the current object.
pub(super) async fn page(model: &Arc<Model>, identity: &Identity, text: Option<&str>) -> anyhow::Result<Page> {
    let Some(kept) = model.object(identity).filter(|_| model.is_kind_claimed(&identity.group, &identity.kind)) else {
        return Ok(Page::not_found(&format!("{identity} does not exist, or you have no right to see it.")));
    };
    let live = &kept.object;
    let shown = match text {
        Some(text) => text.replace("\r\n", "\n"),
        None => shown_for_edit(live)?,
    };
    let result = match text.map(|_| edited(live, &shown)) {
        None => None,
        Some(Err(problems)) => Some(unusable(WRONG, &problems)),
        Some(Ok(Edited { object, warnings })) => {
            let mut gathered = model.gathered();
            gathered.add(live);
            let known = model.sources().known;
            let effect =
                edit_effect(&mut gathered, &*known, &model.serving(), model.cluster(), identity, &object).await;
            Some(match effect {
                Ok(effect) => shown_effect(&effect, &warnings),
                Err(error) => unusable(WRONG, &[with_causes(error.as_ref())]),
            })
        }
    };
    let fixed = html! {
        p { a href=(Address::Object(identity.clone())) { "Back to " (plain(&identity.to_string())) } }
        @if let Some(result) = result { (result) }
        form.edit method="post" action=(Address::Effect(identity.clone())) {
            label for="yaml" { "The object as YAML" }
            p.note #yaml-note {
                "Change the text, and let the policies of the cluster compute the effect on this machine. Nothing in the "
                "cluster changes. " code { (MASK) } " stands for a secret value, which stays as it is."
            }
            textarea #yaml name="yaml" rows="24" spellcheck="false" autocomplete="off" aria-describedby="yaml-note" { (shown) }
            button type="submit" { "Show the effect" }
        }
    };
    Ok(Page::new(format!("Effect of an edit of {identity}"), "/objects", fixed, Vec::new()))
}

/// Shows the heading above the effect. The browser moves the focus to the heading, so that a screen reader reads the
/// effect first.
pub(super) fn heading(text: &str) -> Markup {
    html! { h2 #result-heading tabindex="-1" autofocus { (text) } }
}

pub(super) fn unusable(title: &str, problems: &[String]) -> Markup {
    html! {
        section.result.bad aria-labelledby="result-heading" {
            (heading(title))
            ul { @for problem in problems.iter().take(ROWS) { li { (plain(problem)) } } }
            (cells::more(ROWS, problems.len(), "problems"))
        }
    }
}

fn shown_effect(EditEffect { lines, rolls, problem, notes, status }: &EditEffect, warnings: &[String]) -> Markup {
    let [phase, message] = status;
    html! {
        section.result aria-labelledby="result-heading" {
            (heading("Effect of the edit"))
            @if let Some(problem) = problem {
                p { strong { "The policies would give no plan: " } (plain(problem)) }
            } @else if lines.is_empty() {
                p { "No child would change." }
            } @else {
                p {
                    (cells::counted(lines.len(), "change", "changes")) ". "
                    @if *rolls > 0 { strong { "Kubernetes would replace the pods of " (cells::counted(*rolls, "workload", "workloads")) "." } }
                    @else { "No pod would be replaced." }
                }
            }
            @if !lines.is_empty() {
                @let shown = &lines[..lines.len().min(ROWS)];
                (cells::table("Changes of the children", ["Child", "Field", "Before", "After"], shown))
                (cells::more(shown.len(), lines.len(), "changes"))
            }
            @if !warnings.is_empty() {
                h3 { "Fields that the API server would drop" }
                ul { @for warning in warnings { li { (plain(warning)) } } }
            }
            @if !notes.is_empty() {
                h3 { "Notes of the policies" }
                ul { @for note in notes { li { (plain(note)) } } }
            }
            @if !phase.is_empty() { p.note { "First status: " (plain(phase)) @if !message.is_empty() { ": " (plain(message)) } } }
        }
    }
}
