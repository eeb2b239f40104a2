//! Pictures of connected objects, each with a list that has the same content.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{
    address::Address,
    cells,
    document::plain,
    svg::{self, MOST, PictureBox},
};
use crate::{
    cli::{console::model::Model, health::HealthState},
    input::Identity,
};

/// Connected objects.
pub(super) struct Drawing {
    nodes: Vec<(Identity, HealthState)>,
    /// Each edge contains two positions in `nodes`: of the object that uses another object, and of the used object.
    edges: Vec<(usize, usize)>,
    /// The object in the middle of the picture.
    focus: Option<Identity>,
    /// The number of connected objects that the picture leaves out.
    left_out: usize,
}

impl Drawing {
    /// Collects the objects that the objects in `first` use, over at most `steps` steps. If `first` contains only one
    /// object, also collects the objects that use it.
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
                // Add the objects that use `first` only on the page of a single object. A page with a list of objects
                // already shows these objects in its list.
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

    /// Returns the objects in the drawing.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Identity> {
        self.nodes.iter().map(|(identity, _)| identity)
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
        let boxes: Vec<PictureBox> = self.nodes.iter().map(|(identity, state)| self.drawn(identity, *state)).collect();
        svg::picture(&boxes, &self.edges)
    }

    fn drawn(&self, identity: &Identity, state: HealthState) -> PictureBox {
        let Identity { kind, namespace, name, .. } = identity;
        let focus = if self.focus.as_ref() == Some(identity) { " focus" } else { "" };
        let other = self.focus.as_ref().and_then(|focus| focus.namespace.clone());
        let place =
            namespace.as_deref().filter(|_| other != *namespace).map(|place| format!("{place}/")).unwrap_or_default();
        PictureBox {
            to: Address::Object(identity.clone()),
            title: identity.to_string(),
            name: format!("{place}{name}"),
            sign: cells::sign(state),
            line: format!("{kind}, {}", state.word()),
            class: format!("{}{focus}", cells::class(state)),
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
