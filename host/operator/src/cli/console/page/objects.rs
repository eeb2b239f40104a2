//! The list of objects, with a filter, and a picture of them. If many objects fit the filter, the picture shows groups.

use std::{collections::BTreeSet, sync::Arc};

use maud::{Markup, html};

use super::{
    address::{Address, Filter},
    cells,
    document::{Page, Part, plain},
    drawing::Drawing,
    extent::Extent,
    grouped, overview,
    svg::MOST,
};
use crate::{
    cli::console::model::{Count, GroupKey, Interest, KeptObject, Model},
    input::Identity,
};

/// The number of objects on one page of the list.
const ROWS: usize = 100;

/// The maximum number of namespaces in the list of choices. If the cluster has more namespaces, the user types the
/// name.
const CHOICES: usize = 200;

/// The objects that fit a filter and that the page shows.
struct Found {
    count: Count,
    /// The objects on this page of the list.
    rows: Vec<(Identity, KeptObject)>,
    /// The first objects of the whole list, for the picture.
    first: Vec<Identity>,
}

/// Builds the page. The form does not change while the page is open.
pub(super) fn page(model: &Arc<Model>, filter: &Filter, extent: Extent) -> Page {
    let found = find(model, filter);
    let drawing = (found.count.total <= MOST).then(|| Drawing::around(model, &found.first, 1));
    let interest = Interest {
        lists: true,
        connections: drawing.is_none(),
        objects: drawing.iter().flat_map(Drawing::objects).cloned().collect(),
    };
    let parts = vec![
        Part::new("summary", overview::summary(model, found.count)),
        Part::new("picture", picture(model, filter, found.count, drawing.as_ref())),
        Part::new("list", list(model, filter, &found)),
    ];
    let fixed = if extent == Extent::Whole {
        form(model, filter)
    } else {
        html! {}
    };
    Page::new("Objects", "/objects", fixed, parts).showing(interest)
}

fn find(model: &Model, filter: &Filter) -> Found {
    model.with_claimed(|all| {
        let fitting: Vec<(&Identity, &KeptObject)> =
            all.filter(|(identity, kept)| filter.fits(identity, kept.state.is_open())).collect();
        let open = fitting.iter().filter(|(_, kept)| kept.state.is_open()).count();
        let count = Count { open, total: fitting.len() };
        let rows = fitting.iter().skip(shown_page(filter, count) * ROWS).take(ROWS);
        let rows = rows.map(|(identity, kept)| ((*identity).clone(), (*kept).clone())).collect();
        let first = fitting.iter().take(MOST).map(|(identity, _)| (*identity).clone()).collect();
        Found { count, rows, first }
    })
}

fn last_page(count: Count) -> usize {
    count.total.saturating_sub(1) / ROWS
}

fn shown_page(filter: &Filter, count: Count) -> usize {
    filter.page.min(last_page(count))
}

fn form(model: &Model, filter: &Filter) -> Markup {
    let (mut namespaces, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for (GroupKey { namespace, kind }, _) in model.counts() {
        namespaces.insert(namespace);
        kinds.insert(kind);
    }
    // The form must show the namespace and the kind in the address, even if no object has them.
    namespaces.insert(filter.namespace.clone());
    kinds.insert(filter.kind.clone());
    for choices in [&mut namespaces, &mut kinds] {
        choices.remove("");
    }
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
            div {
                @if namespaces.len() > CHOICES {
                    label for="namespace" { "Namespace" }
                    input #namespace name="namespace" type="search" value=(plain(&filter.namespace));
                } @else {
                    (select("namespace", "Namespace", "All namespaces", &filter.namespace, &namespaces))
                }
            }
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

fn picture(model: &Model, filter: &Filter, count: Count, drawing: Option<&Drawing>) -> Markup {
    if count.total == 0 {
        return html! {};
    }
    html! {
        section aria-labelledby="picture-heading" {
            h2 #picture-heading { "Connections" }
            @match drawing {
                None => { (grouped::shown(model.groups(|identity, kept| filter.fits(identity, kept.state.is_open())), filter)) }
                Some(drawing) if drawing.is_connected() => { (drawing.html(model)) }
                Some(_) => { p.note { "These objects have no known connections." } }
            }
        }
    }
}

fn list(model: &Model, filter: &Filter, found: &Found) -> Markup {
    let row = |(identity, kept): &(Identity, KeptObject)| {
        [cells::object(model, identity), cells::state(kept.state), html! { (plain(&kept.line)) }]
    };
    let (last, page) = (last_page(found.count), shown_page(filter, found.count));
    let rows: Vec<[Markup; 3]> = found.rows.iter().map(row).collect();
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
