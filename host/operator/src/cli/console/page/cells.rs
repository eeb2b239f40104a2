//! Names, states and tables, as every page shows them.

use maud::{Markup, html};

use super::{address::Address, document::plain};
use crate::{
    cli::{
        console::model::Model,
        health::{HealthState, ObjectName},
    },
    input::Identity,
};

/// Shows the name of an object, as a link if the console has a page for the object.
pub(super) fn object(model: &Model, identity: &Identity) -> Markup {
    let has_page = identity.namespace.is_some() && model.is_kind_claimed(&identity.group, &identity.kind);
    let text = identity.to_string();
    html! {
        @if has_page { a href=(Address::Object(identity.clone())) { (plain(&text)) } } @else { (plain(&text)) }
    }
}

/// Shows a state as a sign and a word, so that users need not see the colour.
pub(super) fn state(state: HealthState) -> Markup {
    html! { span class={ "state " (class(state)) } { span.sign aria-hidden="true" { (sign(state)) } " " (state.word()) } }
}

/// Returns the class of a state for the style sheet.
pub(super) fn class(state: HealthState) -> &'static str {
    match state {
        HealthState::Ready | HealthState::Exists => "good",
        HealthState::NotReady => "waits",
        HealthState::Stalled | HealthState::Missing => "bad",
        HealthState::Unknown => "unknown",
    }
}

/// Returns the sign of a state.
pub(super) fn sign(state: HealthState) -> &'static str {
    match state {
        HealthState::Ready => "✓",
        HealthState::Exists => "–",
        HealthState::NotReady => "…",
        HealthState::Stalled => "!",
        HealthState::Missing => "✗",
        HealthState::Unknown => "?",
    }
}

/// Says how many rows a table leaves out.
pub(super) fn more(shown: usize, total: usize, what: &str) -> Markup {
    let more = total.saturating_sub(shown);
    html! { @if more > 0 { p.note { "… and " (more) " more " (what) "." } } }
}

/// Shows a table of texts. The first cell of each row is its heading.
pub(super) fn table<const N: usize>(caption: &str, heading: [&str; N], rows: &[[String; N]]) -> Markup {
    let cells = rows.iter().map(|row| row.each_ref().map(|cell| html! { (plain(cell)) })).collect();
    table_of(caption, heading, cells)
}

/// Shows a table. The first cell of each row is its heading.
pub(super) fn table_of<const N: usize>(caption: &str, heading: [&str; N], rows: Vec<[Markup; N]>) -> Markup {
    html! {
        div.scroll role="region" aria-label=(caption) tabindex="0" {
            table {
                caption { (caption) }
                thead { tr { @for cell in heading { th scope="col" { (cell) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (column, cell) in row.into_iter().enumerate() {
                                @if column == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Converts the name of an object in a command's answer to an identity.
pub(super) fn identity(ObjectName { group, kind, namespace, name }: &ObjectName) -> Identity {
    Identity { group: group.clone(), kind: kind.clone(), namespace: namespace.clone(), name: name.clone() }
}

/// Returns the number and a word: `one` for the number 1, and `many` for every other number.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
