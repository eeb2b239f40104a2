//! The list of objects, with a filter. If few objects fit the filter, the page also has a picture of them.

use std::{collections::BTreeSet, sync::Arc};

use maud::{Markup, html};

use super::{
    address::{Address, Filter},
    cells,
    document::{Page, Part, plain},
    drawing::{Drawing, MOST},
    overview,
};
use crate::{
    cli::console::model::{KeptObject, Model},
    input::Identity,
};

/// The number of objects on one page of the list.
const ROWS: usize = 100;

/// Builds the page.
pub(super) fn page(model: &Arc<Model>, filter: &Filter) -> Page {
    let found = model.claimed(|identity, kept| filter.fits(identity, kept.state.is_open()));
    let open = found.iter().filter(|(_, kept)| kept.state.is_open()).count();
    let parts = vec![
        Part::new("summary", overview::summary(found.len(), open)),
        Part::new("picture", picture(model, &found)),
        Part::new("list", list(model, filter, &found)),
    ];
    Page::new("Objects", "/objects", form(model, filter), parts)
}

fn form(model: &Model, filter: &Filter) -> Markup {
    let (mut namespaces, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for (identity, _) in model.claimed(|_, _| true) {
        namespaces.extend(identity.namespace);
        kinds.insert(identity.kind);
    }
    // The choices of the address stay, also if no object has them.
    namespaces.extend(Some(filter.namespace.clone()).filter(|it| !it.is_empty()));
    kinds.extend(Some(filter.kind.clone()).filter(|it| !it.is_empty()));
    let select = |name: &str, label: &str, all: &str, chosen: &str, choices: &BTreeSet<String>| {
        html! {
            label for=(name) { (label) }
            select id=(name) name=(name) {
                option value="" { (all) }
                @for choice in choices { option value=(choice) selected[choice == chosen] { (plain(choice)) } }
            }
        }
    };
    html! {
        form.filter role="search" action="/objects" method="get" {
            div { (select("namespace", "Namespace", "All namespaces", &filter.namespace, &namespaces)) }
            div { (select("kind", "Kind", "All kinds", &filter.kind, &kinds)) }
            div {
                label for="state" { "State" }
                select #state name="state" {
                    option value="" { "All states" }
                    option value="open" selected[filter.is_open] { "Not ready" }
                }
            }
            div { label for="name" { "Name contains" } input #name name="name" type="search" value=(plain(&filter.name)); }
            div { button type="submit" { "Filter" } }
        }
    }
}

fn picture(model: &Model, found: &[(Identity, KeptObject)]) -> Markup {
    if found.is_empty() {
        return html! {};
    }
    let names: Vec<Identity> = found.iter().map(|(identity, _)| identity.clone()).collect();
    html! {
        section aria-labelledby="picture-heading" {
            h2 #picture-heading { "Connections" }
            @if found.len() > MOST {
                p.note {
                    "A picture shows at most " (MOST) " objects. Filter the list, or open an object to see what it is "
                    "connected to."
                }
            } @else {
                @let drawing = Drawing::around(model, &names, 1);
                @if drawing.is_connected() { (drawing.html(model)) } @else { p.note { "These objects have no known connections." } }
            }
        }
    }
}

fn list(model: &Model, filter: &Filter, found: &[(Identity, KeptObject)]) -> Markup {
    let row = |(identity, kept): &(Identity, KeptObject)| {
        [cells::object(model, identity), cells::state(kept.state), html! { (plain(&kept.line)) }]
    };
    let last = found.len().saturating_sub(1) / ROWS;
    let page = filter.page.min(last);
    let rows: Vec<[Markup; 3]> = found.iter().skip(page * ROWS).take(ROWS).map(row).collect();
    let at = |page: usize| Address::Objects(Filter { page, ..filter.clone() });
    html! {
        @if !rows.is_empty() {
            section aria-labelledby="list-heading" {
                h2 #list-heading { "List" }
                (cells::table_of("Objects", ["Object", "State", "Details"], rows))
                @if last > 0 {
                    nav aria-label="Pages of the list" {
                        @if page > 0 { a href=(at(page - 1)) rel="prev" { "Previous page" } " " }
                        "Page " (page + 1) " of " (last + 1)
                        @if page < last { " " a href=(at(page + 1)) rel="next" { "Next page" } }
                    }
                }
            }
        }
    }
}
