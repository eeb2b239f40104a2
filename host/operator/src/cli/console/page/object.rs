//! The page of one object: its state and the causes, the connected objects, its children and pods, and the origins of
//! its values.

use std::sync::Arc;

use maud::{Markup, html};

use super::{
    address::Address,
    cells,
    document::{Page, Part, plain},
    drawing::Drawing,
};
use crate::{
    cli::{
        console::model::{Interest, KeptObject, Model},
        health::{CauseAnswer, EventAnswer, StepAnswer, Survey, TreeAnswer},
        policy::{Explanation, explanation},
    },
    error_text::with_causes,
    input::Identity,
};

/// The maximum number of steps from the object to used objects, for the causes and for the picture.
const STEPS: usize = 4;
const DRAWN: usize = 2;
/// The maximum number of Events on the page.
const EVENTS: usize = 30;

/// Builds the page.
pub(super) async fn page(model: &Arc<Model>, identity: &Identity) -> anyhow::Result<Page> {
    let Some(kept) = model.object(identity).filter(|_| model.is_kind_claimed(&identity.group, &identity.kind)) else {
        if model.is_loading_kind(identity) {
            let interest = Interest { objects: [identity.clone()].into(), ..Interest::default() };
            return Ok(Page::loading(identity.to_string(), "/objects").showing(interest));
        }
        return Ok(Page::not_found(&format!("{identity} does not exist, or you have no right to see it.")));
    };
    let mut survey = Survey::new(&model.sources());
    survey.uses(&[Arc::clone(&kept.object)], STEPS).await?;
    survey.below(Some(identity)).await?;
    survey.events(identity.namespace.as_deref().unwrap_or_default()).await?;
    let answer = survey.answer();
    let mut gathered = model.gathered();
    gathered.add(&kept.object);
    // Ignores an error: without the explanation, the rest of the page is still useful.
    let explained = explanation(&mut gathered, &model.serving(), model.cluster(), identity).await;
    let explained = explained.map_err(|error| with_causes(error.as_ref()));
    let drawing = Drawing::around(model, std::slice::from_ref(identity), DRAWN);
    let effect = Address::Effect(identity.clone());
    let fixed = html! { p { a href=(effect) { "See the effect of an edit" } } };
    let mut parts = vec![
        Part::new("state", state(model, &kept, &answer.causes(identity))),
        Part::new("picture", connections(model, &drawing)),
        Part::new("below", below(&answer.tree(identity))),
    ];
    parts.push(Part::new("values", match &explained {
        Ok(explained) => values(explained),
        Err(why) => html! { section { h2 { "Where values come from" } p { "The policies cannot be asked: " (plain(why)) } } },
    }));
    parts.push(Part::new("events", events(&answer.events(identity))));
    let interest =
        Interest { objects: answer.objects().chain(drawing.objects().cloned()).collect(), ..Interest::default() };
    // The page shows pods and Events, which the console does not watch.
    Ok(Page::new(identity.to_string(), "/objects", fixed, parts).showing(interest).with_unwatched(true))
}

fn state(model: &Model, KeptObject { state, line, .. }: &KeptObject, causes: &[CauseAnswer]) -> Markup {
    html! {
        p.summary data-announce { (cells::state(*state)) @if !line.is_empty() { " " (plain(line)) } }
        @if !causes.is_empty() {
            section aria-labelledby="why-heading" {
                h2 #why-heading { @if state.is_open() { "Why it is not ready" } @else { "It uses objects that are not ready" } }
                ol.causes { @for cause in causes { li { (cause_of(model, cause)) } } }
            }
        }
    }
}

fn cause_of(model: &Model, CauseAnswer { steps, message, remedy, .. }: &CauseAnswer) -> Markup {
    let step = |StepAnswer { object, relation, state, message }: &StepAnswer| {
        html! {
            li {
                @if *relation == Some("uses") { "uses " }
                (cells::object(model, &cells::identity(object))) " " (cells::state(*state))
                @if !message.is_empty() { " " (plain(message)) }
            }
        }
    };
    html! {
        p { strong { "Cause: " } (plain(message)) }
        p { strong { "Remedy: " } (plain(remedy)) }
        @if steps.len() > 1 { ol.way { @for one in steps { (step(one)) } } }
    }
}

fn connections(model: &Model, drawing: &Drawing) -> Markup {
    html! {
        @if drawing.is_connected() {
            section aria-labelledby="picture-heading" {
                h2 #picture-heading { "Connections" }
                (drawing.html(model))
            }
        }
    }
}

fn below(top: &TreeAnswer) -> Markup {
    html! {
        section aria-labelledby="below-heading" {
            h2 #below-heading { "Children" }
            @let children = top.below.iter().filter(|it| it.relation == Some("owns"));
            @if children.clone().next().is_none() {
                p { "The object has no children yet." }
            } @else {
                ul.tree { @for child in children { (branch(child, top)) } }
            }
        }
    }
}

fn branch(entry: &TreeAnswer, above: &TreeAnswer) -> Markup {
    let is_same = entry.object.namespace == above.object.namespace;
    let name = if is_same {
        format!("{} {}", entry.object.kind, entry.object.name)
    } else {
        cells::identity(&entry.object).to_string()
    };
    html! {
        li {
            (plain(&name)) " " (cells::state(entry.state))
            @if !entry.message.is_empty() { " " (plain(&entry.message)) }
            @if !entry.below.is_empty() { ul { @for child in &entry.below { (branch(child, entry)) } } }
        }
    }
}

fn values(explained: &Explanation) -> Markup {
    let Explanation { because, conditions, inputs, settings, variables, origins } = explained;
    html! {
        section aria-labelledby="values-heading" {
            h2 #values-heading { "Where values come from" }
            ul { @for sentence in because { li { (plain(sentence)) } } }
            @if !conditions.is_empty() { (cells::table("Conditions", ["Condition", "Status", "Reason", "Message"], conditions)) }
            @if !settings.is_empty() {
                (cells::table("Settings that are not defaults, with their layer", ["Policy", "Setting", "Value", "From"], settings))
            }
            @if !variables.is_empty() {
                (cells::table("Variables of the containers", ["Container", "Variable", "Value", "From"], variables))
            }
            @if !inputs.is_empty() { (cells::table("Objects that the policies read", ["Object", "Found", "Fields"], inputs)) }
            @if !origins.is_empty() {
                details {
                    summary { "Origin of each value in the children (" (origins.len()) ")" }
                    (cells::table("Values of the children", ["Child", "Field", "From"], origins))
                }
            }
        }
    }
}

fn events(events: &[EventAnswer]) -> Markup {
    let row = |event: &EventAnswer| {
        let object = format!("{} {}", event.object.kind, event.object.name);
        [event.last_seen.clone(), event.of.clone(), event.reason.clone(), object, event.message.clone()]
    };
    let rows: Vec<[String; 5]> = events.iter().rev().take(EVENTS).map(row).collect();
    html! {
        @if !rows.is_empty() {
            section aria-labelledby="events-heading" {
                h2 #events-heading { "Events" }
                (cells::table("The newest Events", ["Last seen", "Type", "Reason", "Object", "Message"], &rows))
            }
        }
    }
}
