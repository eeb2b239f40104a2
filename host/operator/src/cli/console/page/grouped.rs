//! A picture of groups of objects, for pages that have too many objects for one picture. A group contains the objects
//! of a kind in a namespace. The picture shows how many objects of each group are not ready, and which groups each
//! group uses.

use maud::{Markup, html};

use super::{
    address::{Address, Filter},
    cells,
    document::plain,
    svg::{self, MOST, PictureBox},
};
use crate::cli::{
    console::model::{Count, GroupKey, Groups},
    health::HealthState,
};

/// Shows the picture and the list of groups.
pub(super) fn shown(groups: Groups, filter: &Filter) -> Markup {
    let (Groups { counts, uses }, shared) = groups.join(MOST);
    let groups: Vec<(&GroupKey, Count)> = counts.iter().map(|(key, count)| (key, *count)).collect();
    let at = |key: &GroupKey| groups.binary_search_by_key(&key, |(other, _)| *other).ok();
    let lines: Vec<(usize, usize, usize)> =
        uses.iter().filter_map(|((user, used), number)| Some((at(user)?, at(used)?, *number))).collect();
    let boxes: Vec<PictureBox> = groups.iter().map(|(key, count)| drawn(key, *count, filter)).collect();
    // Leave out connections within a group: a line from a group to itself has no meaning for the reader.
    let drawn: Vec<(usize, usize)> =
        lines.iter().filter(|(user, used, _)| user != used).map(|(user, used, _)| (*user, *used)).collect();
    html! {
        p.note {
            "Each box stands for the objects of a kind in a namespace, because there are more than " (MOST) " objects. "
            "Choose a box, or filter the list, to see the objects."
        }
        (svg::picture(&boxes, &drawn))
        @if shared > 0 {
            p.note { (cells::counted(shared, "namespace shares", "namespaces share")) " the boxes with the name “" (OTHERS) "”." }
        }
        ul.connections {
            @for (position, drawn) in boxes.iter().enumerate() {
                li {
                    a href=(drawn.to) { (plain(&drawn.title)) } ": "
                    span class={ "state " (drawn.class) } { span.sign aria-hidden="true" { (drawn.sign) } " " (summary(groups[position].1)) }
                    @for (_, used, number) in lines.iter().filter(|(user, _, _)| *user == position) {
                        ", " (cells::counted(*number, "connection", "connections")) " to " (plain(&boxes[*used].title))
                    }
                }
            }
        }
    }
}

/// The name that the boxes show for all namespaces that have no boxes of their own.
const OTHERS: &str = "other namespaces";

fn drawn(GroupKey { namespace, kind }: &GroupKey, count: Count, filter: &Filter) -> PictureBox {
    let state = if count.open == 0 { HealthState::Ready } else { HealthState::NotReady };
    let place = if namespace.is_empty() { OTHERS } else { namespace };
    let namespace = if namespace.is_empty() { filter.namespace.clone() } else { namespace.clone() };
    PictureBox {
        to: Address::Objects(Filter { namespace, kind: kind.clone(), page: 0, ..filter.clone() }),
        title: format!("{} in {place}", cells::counted(count.total, kind, kind)),
        name: place.to_owned(),
        sign: cells::sign(state),
        line: format!("{} {kind}, {}", count.total, summary(count)),
        class: cells::class(state).to_owned(),
    }
}

fn summary(Count { open, .. }: Count) -> String {
    if open == 0 { "all ready".to_owned() } else { format!("{open} not ready") }
}
