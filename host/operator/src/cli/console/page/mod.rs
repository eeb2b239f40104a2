//! The pages. A page has parts. When a part changes, the server sends this part again.
//!
//! | module | content |
//! |---|---|
//! | `address` | the addresses |
//! | `document` | a page as an HTML document; escapes texts |
//! | `extent` | how much of a page to build |
//! | `overview`, `objects`, `object`, `effect`, `policies`, `candidate` | the pages |
//! | `drawing`, `grouped` | pictures of connected objects and of groups of objects, with the same content as a list |
//! | `svg` | a picture of boxes and lines |
//! | `cells` | names, states and tables |

mod address;
mod candidate;
mod cells;
mod document;
mod drawing;
mod effect;
mod extent;
mod grouped;
mod object;
mod objects;
mod overview;
mod policies;
mod svg;

use std::sync::Arc;

use maud::{Markup, html};
use tokio_util::sync::CancellationToken;

use super::model::{Limits, Model, Places};
use document::plain;

pub(super) use address::Address;
pub(super) use document::{Page, Part};
pub(super) use extent::Extent;

/// Builds the page at an address.
pub(super) async fn build(model: &Arc<Model>, address: &Address, extent: Extent) -> anyhow::Result<Page> {
    let mut page = match address {
        Address::Overview => overview::page(model).await?,
        Address::Objects(filter) => objects::page(model, filter, extent),
        Address::Object(identity) => object::page(model, identity).await?,
        Address::Effect(identity) => effect::page(model, identity, None).await?,
        Address::Policies => policies::page(model),
        Address::Candidate => candidate::page(model, None).await,
        Address::Revision(name) => policies::revision(model, name),
    };
    page.parts.push(Part::new("limits", limits(&model.limits())));
    Ok(page)
}

/// Builds the page that shows the effect of the text that the user wrote into a form. A cancelled `stop` ends the
/// computation.
pub(super) async fn effect_of(
    model: &Arc<Model>,
    address: &Address,
    text: &str,
    stop: &CancellationToken,
) -> anyhow::Result<Page> {
    match address {
        Address::Effect(identity) => effect::page(model, identity, Some(text)).await,
        Address::Candidate => Ok(candidate::page(model, Some((text, stop))).await),
        _ => Ok(Page::not_found("There is no such form.")),
    }
}

/// Lists the types and namespaces that the user cannot see.
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
                                (left_out) " namespaces are left out, because the console can watch only some namespaces one "
                                "by one. Choose namespaces with " code { "--namespace" } "."
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
