//! Pictures of connected objects. A list beside each picture has the same content, so the picture itself is hidden from
//! screen readers and from the keyboard.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{address::Address, cells, document::plain};
use crate::{
    cli::{
        console::{
            model::Model,
            picture::{HEIGHT, Layout, WIDTH, layout},
        },
        health::HealthState,
    },
    input::Identity,
};

/// The maximum number of objects in a picture.
pub(super) const MOST: usize = 60;
/// The number of characters of a name that fit into a box.
const FITS: usize = 24;
/// The space around a picture.
const MARGIN: i32 = 8;

/// Connected objects.
pub(super) struct Drawing {
    nodes: Vec<(Identity, HealthState)>,
    /// The positions of the user and of the used object.
    edges: Vec<(usize, usize)>,
    /// The object in the middle of the picture.
    focus: Option<Identity>,
    /// The number of connected objects that the picture leaves out.
    left_out: usize,
}

impl Drawing {
    /// Collects the objects that `first` are connected to, over at most `steps` steps. Looks at users only from the
    /// first objects.
    pub(super) fn around(model: &Model, first: &[Identity], steps: usize) -> Self {
        let mut nodes: BTreeMap<Identity, usize> = BTreeMap::new();
        let (mut order, mut left_out): (Vec<Identity>, usize) = (Vec::new(), 0);
        let mut add = |identity: &Identity, order: &mut Vec<Identity>| {
            if nodes.contains_key(identity) {
                return false;
            }
            if nodes.len() >= MOST {
                left_out += 1;
                return false;
            }
            nodes.insert(identity.clone(), nodes.len());
            order.push(identity.clone());
            true
        };
        let mut next: Vec<Identity> = first.iter().filter(|identity| add(identity, &mut order)).cloned().collect();
        let focus = (first.len() == 1).then(|| first[0].clone());
        for step in 0..steps {
            let mut found = Vec::new();
            for identity in &next {
                let (uses, users) = model.connections(identity);
                found.extend(uses.into_iter().filter(|used| add(used, &mut order)));
                // A list shows the users as objects of the list.
                let shown = users.iter().filter(|_| step == 0 && focus.is_some());
                for user in shown {
                    add(user, &mut order);
                }
            }
            next = found;
        }
        let mut edges = Vec::new();
        for (user, identity) in order.iter().enumerate() {
            edges.extend(model.connections(identity).0.iter().filter_map(|used| Some((user, *nodes.get(used)?))));
        }
        let state = |identity: &Identity| model.object(identity).map_or(HealthState::Missing, |kept| kept.state);
        let nodes = order.into_iter().map(|identity| (identity.clone(), state(&identity))).collect();
        Self { nodes, edges, focus, left_out }
    }

    /// Returns whether the drawing shows a connection.
    pub(super) fn is_connected(&self) -> bool {
        !self.edges.is_empty()
    }

    /// Shows the picture and the list.
    pub(super) fn html(&self, model: &Model) -> Markup {
        html! {
            (self.picture())
            @if self.left_out > 0 {
                p.note { "The picture and the list leave out " (self.left_out) " more connected objects." }
            }
            (self.list(model))
        }
    }

    fn picture(&self) -> Markup {
        let edges: Vec<(usize, usize)> = self.edges.clone();
        let Layout { spots, width, height } = layout(self.nodes.len(), &edges);
        let view = format!("{} {} {} {}", -MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN);
        html! {
            div.picture aria-hidden="true" {
                svg xmlns="http://www.w3.org/2000/svg" viewBox=(view) width=(width + 2 * MARGIN) height=(height + 2 * MARGIN)
                    focusable="false" {
                    defs {
                        marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto" {
                            path d="M0 0 L8 4 L0 8 z" {}
                        }
                    }
                    @for (user, used) in &edges { path.edge d=(curve(spots[*user], spots[*used])) marker-end="url(#arrow)" {} }
                    @for ((identity, state), spot) in self.nodes.iter().zip(&spots) { (self.node(identity, *state, *spot)) }
                }
            }
        }
    }

    fn node(&self, identity: &Identity, state: HealthState, (x, y): (i32, i32)) -> Markup {
        let Identity { kind, namespace, name, .. } = identity;
        let class = format!(
            "node {}{}",
            cells::class(state),
            if self.focus.as_ref() == Some(identity) { " focus" } else { "" }
        );
        let other = self.focus.as_ref().and_then(|focus| focus.namespace.clone());
        let place =
            namespace.as_deref().filter(|_| other != *namespace).map(|place| format!("{place}/")).unwrap_or_default();
        html! {
            a href=(Address::Object(identity.clone())) tabindex="-1" {
                g class=(class) transform=(format!("translate({x} {y})")) {
                    title { (plain(&identity.to_string())) }
                    rect width=(WIDTH) height=(HEIGHT) rx="6" {}
                    text x="12" y="20" { (plain(&cut(&format!("{place}{name}")))) }
                    text.kind x="12" y="39" { (cells::sign(state)) " " (plain(&cut(kind))) ", " (state.word()) }
                }
            }
        }
    }

    fn list(&self, model: &Model) -> Markup {
        let used =
            |at: usize| self.edges.iter().filter(move |(user, _)| *user == at).map(|(_, used)| &self.nodes[*used].0);
        html! {
            ul.connections {
                @for (at, (identity, state)) in self.nodes.iter().enumerate() {
                    li {
                        (cells::object(model, identity)) " " (cells::state(*state))
                        @if used(at).next().is_some() {
                            " uses "
                            @for (position, other) in used(at).enumerate() {
                                @if position > 0 { ", " }
                                (plain(&other.to_string()))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the line from a user to a used object.
fn curve((from_x, from_y): (i32, i32), (to_x, to_y): (i32, i32)) -> String {
    let (start, end) = ((from_x + WIDTH, from_y + HEIGHT / 2), (to_x, to_y + HEIGHT / 2));
    if from_x >= to_x {
        // A line within a column, or to the left, as part of a circle.
        let (bottom, out) = (from_y.max(to_y) + HEIGHT + 9, WIDTH / 2);
        return format!(
            "M{} {} C{} {bottom} {} {bottom} {} {}",
            from_x + out,
            from_y + HEIGHT,
            from_x + out,
            to_x + out,
            to_x + out,
            to_y + HEIGHT
        );
    }
    let middle = i32::midpoint(start.0, end.0);
    format!("M{} {} C{middle} {} {middle} {} {} {}", start.0, start.1, start.1, end.1, end.0, end.1)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(FITS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(FITS - 1).chain(['…']).collect(),
    }
}
