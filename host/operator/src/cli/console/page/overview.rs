//! The first page: what is not ready and why, and the namespaces.

use std::{collections::BTreeMap, sync::Arc};

use maud::{Markup, html};
use serde_json::Value;

use super::{
    address::{Address, Filter},
    cells,
    document::{Page, Part, plain},
};
use crate::{
    cli::{
        console::model::{KeptObject, Model},
        health::{CauseAnswer, Survey},
    },
    input::Identity,
};

/// The number of objects for which the page follows the causes.
const TRACED: usize = 25;
/// The number of steps from an object to the cause.
const STEPS: usize = 4;

/// Builds the page.
pub(super) async fn page(model: &Arc<Model>) -> anyhow::Result<Page> {
    let all = model.claimed(|_, _| true);
    let open: Vec<&(Identity, KeptObject)> = all.iter().filter(|(_, kept)| kept.state.is_open()).collect();
    let traced: Vec<Arc<Value>> = open.iter().take(TRACED).map(|(_, kept)| Arc::clone(&kept.object)).collect();
    let mut survey = Survey::new(&model.sources());
    survey.uses(&traced, STEPS).await?;
    survey.below(false).await?;
    let answer = survey.answer();
    let rows = open.iter().take(TRACED).map(|(identity, kept)| {
        let causes = answer.causes(identity);
        [
            cells::object(model, identity),
            cells::state(kept.state),
            causes.first().map_or_else(|| html! { (plain(&kept.line)) }, |cause| told(model, cause, causes.len())),
            html! { (plain(&causes.first().map(|cause| cause.remedy.clone()).unwrap_or_default())) },
        ]
    });
    let rows = rows.collect();
    let parts = vec![
        Part::new("summary", summary(all.len(), open.len())),
        Part::new("open", not_ready(rows, open.len())),
        Part::new("namespaces", namespaces(&all)),
    ];
    Ok(Page::new("Overview", "/", html! {}, parts))
}

/// Says how many objects are ready. The script announces each change of this sentence.
pub(super) fn summary(total: usize, open: usize) -> Markup {
    html! {
        p.summary data-announce {
            @if total == 0 {
                "There are no objects that you can see."
            } @else {
                (total - open) " of " (cells::counted(total, "object is ready.", "objects are ready."))
            }
        }
    }
}

/// Shows a cause with the object that has it.
fn told(model: &Model, cause: &CauseAnswer, causes: usize) -> Markup {
    html! {
        @if let Some(last) = cause.steps.last().filter(|_| cause.steps.len() > 1) {
            (cells::object(model, &cells::identity(&last.object))) ": "
        }
        (plain(&cause.message))
        @if causes > 1 { " (causes: " (causes) ")" }
    }
}

fn not_ready(rows: Vec<[Markup; 4]>, total: usize) -> Markup {
    let more = total.saturating_sub(rows.len());
    let all = Address::Objects(Filter { is_open: true, ..Filter::default() });
    html! {
        @if total > 0 {
            section aria-labelledby="open-heading" {
                h2 #open-heading { "Not ready" }
                (cells::table_of("Objects that are not ready", ["Object", "State", "Cause", "Remedy"], rows))
                @if more > 0 { p { a href=(all) { "Show all " (total) " objects that are not ready" } } }
            }
        }
    }
}

/// Shows the number of objects of each namespace.
fn namespaces(all: &[(Identity, KeptObject)]) -> Markup {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (identity, kept) in all {
        let (total, open) = counts.entry(identity.namespace.as_deref().unwrap_or_default()).or_default();
        *total += 1;
        *open += usize::from(kept.state.is_open());
    }
    let row = |(namespace, (total, open)): (&str, (usize, usize))| {
        let of = |is_open| Address::Objects(Filter { namespace: namespace.to_owned(), is_open, ..Filter::default() });
        [
            html! { a href=(of(false)) { (plain(namespace)) } },
            html! { (total) },
            html! { @if open > 0 { a href=(of(true)) { (open) " not ready" } } @else { "all ready" } },
        ]
    };
    let rows: Vec<[Markup; 3]> = counts.into_iter().map(row).collect();
    html! {
        @if !rows.is_empty() {
            section aria-labelledby="namespaces-heading" {
                h2 #namespaces-heading { "Namespaces" }
                (cells::table_of("Objects by namespace", ["Namespace", "Objects", "State"], rows))
            }
        }
    }
}
