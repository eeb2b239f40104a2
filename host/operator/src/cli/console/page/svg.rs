//! A picture of boxes and lines. A list below the picture has the same content. So screen readers and the keyboard skip
//! the picture.

use maud::{Markup, html};

use super::{address::Address, document::plain};
use crate::cli::console::picture::{HEIGHT, Layout, WIDTH, layout};

/// The maximum number of boxes in a picture.
pub(super) const MOST: usize = 60;
/// The number of characters of a name that fit into a box.
const FITS: usize = 24;
/// The space around a picture.
const MARGIN: i32 = 8;

/// A box of a picture.
pub(super) struct PictureBox {
    /// The page to which the box leads.
    pub(super) to: Address,
    /// The full name, which a browser shows when the mouse is over the box.
    pub(super) title: String,
    pub(super) name: String,
    pub(super) sign: &'static str,
    pub(super) line: String,
    pub(super) class: String,
}

/// Draws the boxes.
///
/// A line `(user, used)` contains the positions of two boxes: the object of the box `user` uses the object of the box
/// `used`.
pub(super) fn picture(boxes: &[PictureBox], lines: &[(usize, usize)]) -> Markup {
    let Layout { spots, width, height } = layout(boxes.len(), lines);
    let view = format!("{} {} {} {}", -MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN);
    html! {
        div.picture role="region" aria-label="Picture of the connections" tabindex="0" {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(view) width=(width + 2 * MARGIN) height=(height + 2 * MARGIN)
                focusable="false" aria-hidden="true" {
                defs {
                    marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto" {
                        path d="M0 0 L8 4 L0 8 z" {}
                    }
                }
                @for (user, used) in lines { path.edge d=(curve(spots[*user], spots[*used])) marker-end="url(#arrow)" {} }
                @for (drawn, spot) in boxes.iter().zip(&spots) { (node(drawn, *spot)) }
            }
        }
    }
}

fn node(PictureBox { to, title, name, sign, line, class }: &PictureBox, (x, y): (i32, i32)) -> Markup {
    html! {
        a href=(to) tabindex="-1" {
            g class={ "node " (class) } transform=(format!("translate({x} {y})")) {
                title { (plain(title)) }
                rect width=(WIDTH) height=(HEIGHT) rx="6" {}
                text x="12" y="20" { (plain(&cut(name))) }
                text.kind x="12" y="39" { (sign) " " (plain(&cut(line))) }
            }
        }
    }
}

/// Returns the line from an object to an object that it uses.
fn curve((from_x, from_y): (i32, i32), (to_x, to_y): (i32, i32)) -> String {
    let (start, end) = ((from_x + WIDTH, from_y + HEIGHT / 2), (to_x, to_y + HEIGHT / 2));
    if from_x >= to_x {
        // The line ends in the same column, or in a column to the left. This is possible only for objects that use each
        // other in a circle.
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
