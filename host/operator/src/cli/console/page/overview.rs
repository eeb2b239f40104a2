//! The first page: the objects that are not ready, with the causes, and the namespaces.

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
        console::model::{Count, GroupKey, Interest, KeptObject, Model},
        health::{CauseAnswer, Survey},
    },
    input::Identity,
};

/// The maximum number of objects for which the page finds the causes.
const TRACED: usize = 25;
/// The maximum number of steps from an object to a cause.
const STEPS: usize = 4;

/// The maximum number of namespaces on the page.
const NAMESPACES: usize = 50;

/// Builds the page.
pub(super) async fn page(model: &Arc<Model>) -> anyhow::Result<Page> {
    let counts = model.counts();
    let mut total = Count::default();
    for (_, count) in &counts {
        total.add(*count);
    }
    let open: Vec<(Identity, KeptObject)> = model.with_claimed(|all| {
        let open = all.filter(|(_, kept)| kept.state.is_open()).take(TRACED);
        open.map(|(identity, kept)| (identity.clone(), kept.clone())).collect()
    });
    let traced: Vec<Arc<Value>> = open.iter().map(|(_, kept)| Arc::clone(&kept.object)).collect();
    let mut survey = Survey::new(&model.sources());
    survey.uses(&traced, STEPS).await?;
    survey.below(None).await?;
    let answer = survey.answer();
    let rows = open.iter().map(|(identity, kept)| {
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
        Part::new("summary", summary(model, total)),
        Part::new("open", not_ready(rows, total.open)),
        Part::new("namespaces", namespaces(&counts)),
    ];
    let interest = Interest { lists: true, connections: false, objects: answer.objects().collect() };
    let page = Page::new("Overview", "/", html! {}, parts);
    Ok(page.showing(interest).with_unwatched(answer.is_unwatched))
}

/// Says how many objects are ready. The page's script announces each change of this sentence to screen readers.
pub(super) fn summary(model: &Model, Count { open, total }: Count) -> Markup {
    html! {
        p.summary data-announce {
            @match (model.is_loading(), total) {
                (true, _) => { "The console still reads the objects of the cluster. Objects so far: " (total) "." }
                (false, 0) => { "There are no objects that you can see." }
                (false, _) => { (total - open) " of " (cells::counted(total, "object is ready.", "objects are ready.")) }
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

/// Shows the number of objects of each namespace. If there are many namespaces, shows first the namespaces with the
/// most unready objects, and then the largest namespaces.
fn namespaces(counts: &[(GroupKey, Count)]) -> Markup {
    let mut by_namespace: BTreeMap<&str, Count> = BTreeMap::new();
    for (GroupKey { namespace, .. }, count) in counts {
        by_namespace.entry(namespace).or_default().add(*count);
    }
    let total = by_namespace.len();
    let mut shown: Vec<(&str, Count)> = by_namespace.into_iter().collect();
    if total > NAMESPACES {
        shown.sort_by(|(name, count), (other, against)| against.cmp(count).then(name.cmp(other)));
        shown.truncate(NAMESPACES);
    }
    let row = |(namespace, Count { open, total }): (&str, Count)| {
        let of = |is_open| Address::Objects(Filter { namespace: namespace.to_owned(), is_open, ..Filter::default() });
        [
            html! { a href=(of(false)) { (plain(namespace)) } },
            html! { (total) },
            html! { @if open > 0 { a href=(of(true)) { (open) " not ready" } } @else { "all ready" } },
        ]
    };
    let rows: Vec<[Markup; 3]> = shown.into_iter().map(row).collect();
    let shown = rows.len();
    html! {
        @if !rows.is_empty() {
            section aria-labelledby="namespaces-heading" {
                h2 #namespaces-heading { "Namespaces" }
                (cells::table_of("Objects by namespace", ["Namespace", "Objects", "State"], rows))
                (cells::more(shown, total, "namespaces"))
            }
        }
    }
}
