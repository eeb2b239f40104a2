//! The pages. A page has parts, and the server sends each part again when it changes.
//!
//! Templates escape every text. Texts of users also pass through [`plain`], which shows control characters and characters
//! that change the direction of text as escapes.
//!
//! | module | content |
//! |---|---|
//! | `address` | the addresses |
//! | `overview`, `objects`, `object`, `effect`, `policies` | the pages |
//! | `drawing` | pictures of connected objects, with the same content as a list |
//! | `cells` | names, states and tables |

mod address;
mod cells;
mod drawing;
mod effect;
mod object;
mod objects;
mod overview;
mod policies;

use std::{borrow::Cow, sync::Arc};

use axum::http::StatusCode;
use kaos_policy::printable::printable_lines;
use maud::{DOCTYPE, Markup, html};

use super::model::{Limits, Model, Places};
use crate::hashing::hash;

pub(super) use address::Address;

/// The entries of the menu: the title, and the address.
const MENU: [(&str, &str); 3] = [("Overview", "/"), ("Objects", "/objects"), ("Policies", "/policies")];

/// A page.
pub(super) struct Page {
    pub(super) status: StatusCode,
    title: String,
    /// The address of the entry of the menu to which the page belongs.
    entry: &'static str,
    /// The part that does not change while the page is open, such as a form.
    fixed: Markup,
    pub(super) parts: Vec<Part>,
}

/// A part of a page.
pub(super) struct Part {
    pub(super) id: &'static str,
    pub(super) body: Markup,
}

impl Part {
    fn new(id: &'static str, body: Markup) -> Self {
        Self { id, body }
    }

    /// Returns a digest, from which the server sees whether the part changed.
    pub(super) fn digest(&self) -> String {
        format!("{:016x}", hash(&self.body.0))
    }
}

impl Page {
    fn new(title: impl Into<String>, entry: &'static str, fixed: Markup, parts: Vec<Part>) -> Self {
        Self { status: StatusCode::OK, title: title.into(), entry, fixed, parts }
    }

    /// Returns the page that says that there is no such page or object.
    pub(super) fn not_found(what: &str) -> Self {
        let fixed = html! { p { (plain(what)) } p { a href="/" { "Back to the overview" } } };
        Self { status: StatusCode::NOT_FOUND, ..Self::new("Not found", "", fixed, Vec::new()) }
    }

    /// Returns the page that shows an error.
    pub(super) fn failed(why: &str) -> Self {
        let fixed = html! { p { "The console cannot show this page:" } pre.error tabindex="0" { (plain(why)) } };
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, ..Self::new("Error", "", fixed, Vec::new()) }
    }

    /// Returns the whole document. `address` is the address of the page; `None` if the page does not change.
    pub(super) fn html(&self, address: Option<&Address>) -> String {
        let entry = |title: &str, to: &str| {
            html! { li { a href=(to) aria-current=[(to == self.entry).then_some("page")] { (title) } } }
        };
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (plain(&self.title)) " · KAOS console" }
                    link rel="icon" href="/static/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/static/console.css";
                    script src="/static/console.js" defer {}
                }
                body data-page=[address.map(ToString::to_string)] {
                    a.skip href="#main" { "Skip to the content" }
                    header {
                        p.brand { "KAOS console" }
                        nav aria-label="Pages" { ul { @for (title, to) in MENU { (entry(title, to)) } } }
                        p #live.live {}
                    }
                    main #main tabindex="-1" {
                        h1 { (plain(&self.title)) }
                        (self.fixed)
                        @for part in &self.parts {
                            div id=(part.id) data-digest=(part.digest()) { (part.body) }
                        }
                    }
                    p #news.hidden role="status" aria-live="polite" {}
                }
            }
        };
        document.into_string()
    }
}

/// Builds the page at an address.
pub(super) async fn build(model: &Arc<Model>, address: &Address) -> anyhow::Result<Page> {
    let mut page = match address {
        Address::Overview => overview::page(model).await?,
        Address::Objects(filter) => objects::page(model, filter),
        Address::Object(identity) => object::page(model, identity).await?,
        Address::Effect(identity) => effect::page(model, identity, None).await?,
        Address::Policies => policies::page(model),
        Address::Revision(name) => policies::revision(model, name),
    };
    page.parts.push(Part::new("limits", limits(&model.limits())));
    Ok(page)
}

/// Builds the page with the effect of an edit.
pub(super) async fn effect_of(model: &Arc<Model>, address: &Address, text: &str) -> anyhow::Result<Page> {
    match address {
        Address::Effect(identity) => effect::page(model, identity, Some(text)).await,
        _ => Ok(Page::not_found("There is no such form.")),
    }
}

/// Escapes the characters of a text that would mislead a reader.
fn plain(text: &str) -> Cow<'_, str> {
    printable_lines(text)
}

/// Says once what the user cannot see.
fn limits(Limits { places, missing, broken, policies }: &Limits) -> Markup {
    let Places { hidden, left_out, .. } = places;
    let count = hidden.len() + left_out + missing.len() + broken.len() + usize::from(policies.is_some());
    html! {
        @if count > 0 {
            aside aria-label="Limits of these pages" {
                details {
                    summary { "These pages show only a part of the cluster" }
                    ul {
                        @if !hidden.is_empty() {
                            li { "You have no right to list objects in: " (plain(&hidden.join(", "))) "." }
                        }
                        @if *left_out > 0 {
                            li {
                                (left_out) " namespaces are left out, because the console watches at most 100 namespaces "
                                "one by one. Choose namespaces with " code { "--namespace" } "."
                            }
                        }
                        @for missing in missing { li { (plain(&missing.to_string())) } }
                        @for broken in broken { li { (plain(broken)) } }
                        @if let Some(policies) = policies { li { (plain(policies)) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_users_is_never_markup() {
        let title = "<script>alert(1)</script>\u{202e}";
        let fixed = html! { p title=(plain("\" onclick=\"x")) { (plain("<img src=x onerror=y>")) } };
        let text = Page::new(title, "/", fixed, Vec::new()).html(Some(&Address::Overview));
        assert!(!text.contains("<script>alert") && !text.contains("<img") && !text.contains("\" onclick"), "{text}");
        assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e}"), "{text}");
        assert_eq!(text.matches("<script").count(), 1, "{text}");
    }
}
