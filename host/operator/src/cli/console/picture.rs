//! Places the objects of a picture. Each object stands in a column right of the objects that use it. Within a column,
//! objects stand near the objects that they are connected to.

/// The width of an object, in pixels.
pub(super) const WIDTH: i32 = 210;
/// The height of an object.
pub(super) const HEIGHT: i32 = 50;
/// The distance between two columns.
const BESIDE: i32 = 80;
/// The distance between two objects of a column.
const BELOW: i32 = 18;
/// The number of rounds. Each round sorts every column by the rows of the connected objects in other columns.
const SWEEPS: usize = 4;

/// The upper left corner of each object, and the size of the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) spots: Vec<(i32, i32)>,
    pub(super) width: i32,
    pub(super) height: i32,
}

/// Places `count` objects.
///
/// An edge `(user, used)` contains the positions of two objects: the object `user` uses the object `used`.
pub(super) fn layout(count: usize, edges: &[(usize, usize)]) -> Layout {
    let columns = columns(count, edges);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); columns.iter().max().map_or(0, |last| last + 1)];
    for (node, column) in columns.iter().enumerate() {
        rows[*column].push(node);
    }
    sort(&mut rows, &columns, edges);
    let tallest = rows.iter().map(Vec::len).max().unwrap_or_default();
    let height_of = |many: usize| (HEIGHT + BELOW) * amount(many) - BELOW;
    let mut spots = vec![(0, 0); count];
    for (column, nodes) in rows.iter().enumerate() {
        let top = (height_of(tallest) - height_of(nodes.len())) / 2;
        for (row, node) in nodes.iter().enumerate() {
            spots[*node] = (amount(column) * (WIDTH + BESIDE), top + amount(row) * (HEIGHT + BELOW));
        }
    }
    let width = (amount(rows.len()) * (WIDTH + BESIDE) - BESIDE).max(0);
    Layout { spots, width, height: height_of(tallest).max(0) }
}

fn amount(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX / (WIDTH + BESIDE))
}

/// Returns the column of each object: the length of the longest chain of edges that ends at the object. Ignores edges
/// that close a circle.
fn columns(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut used: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (from, to) in edges {
        used[*from].push(*to);
    }
    let (mut finished, mut seen) = (Vec::new(), vec![Visit::New; count]);
    let mut forward: Vec<(usize, usize)> = Vec::new();
    for start in 0..count {
        let mut stack = vec![(start, 0)];
        while let Some((node, next)) = stack.pop() {
            if next == 0 {
                if seen[node] != Visit::New {
                    continue;
                }
                seen[node] = Visit::Open;
            }
            match used[node].get(next) {
                None => {
                    seen[node] = Visit::Done;
                    finished.push(node);
                }
                Some(to) => {
                    stack.push((node, next + 1));
                    if seen[*to] != Visit::Open {
                        forward.push((node, *to));
                        stack.push((*to, 0));
                    }
                }
            }
        }
    }
    let mut columns = vec![0; count];
    for node in finished.into_iter().rev() {
        for (_, to) in forward.iter().filter(|(from, _)| *from == node) {
            columns[*to] = columns[*to].max(columns[node] + 1);
        }
    }
    columns
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    Open,
    Done,
}

/// Sorts each column by the mean row of the connected objects in other columns.
fn sort(rows: &mut [Vec<usize>], columns: &[usize], edges: &[(usize, usize)]) {
    let mut row = vec![0; columns.len()];
    for nodes in rows.iter() {
        for (at, node) in nodes.iter().enumerate() {
            row[*node] = at;
        }
    }
    for sweep in 0..SWEEPS {
        let is_rightwards = sweep % 2 == 0;
        for step in 0..rows.len() {
            let column = if is_rightwards { step } else { rows.len() - 1 - step };
            let mean = |node: usize| {
                let others = edges.iter().filter_map(|(from, to)| match (*from == node, *to == node) {
                    (true, false) => Some(*to),
                    (false, true) => Some(*from),
                    _ => None,
                });
                let beside = others.filter(|other| (columns[*other] < column) == is_rightwards);
                let rows: Vec<usize> = beside.map(|other| row[other]).collect();
                // Scale the mean, because a rounded mean would be too inexact.
                (rows.iter().sum::<usize>() * 1000).checked_div(rows.len()).unwrap_or(row[node] * 1000)
            };
            let mut sorted: Vec<(usize, usize)> = rows[column].iter().map(|node| (mean(*node), *node)).collect();
            sorted.sort_by_key(|(mean, _)| *mean);
            for (at, (_, node)) in sorted.iter().enumerate() {
                rows[column][at] = *node;
                row[*node] = at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_stand_left_of_what_they_use_and_circles_end() {
        // 0 uses 1 and 2, 1 uses 2, and 2 uses 0.
        let Layout { spots, width, height } = layout(3, &[(0, 1), (0, 2), (1, 2), (2, 0)]);
        let step = WIDTH + BESIDE;
        assert_eq!(spots, [(0, 0), (step, 0), (2 * step, 0)]);
        assert_eq!((width, height), (2 * step + WIDTH, HEIGHT));
        assert_eq!(layout(0, &[]), Layout { spots: vec![], width: 0, height: 0 });
        assert_eq!(layout(1, &[(0, 0)]).spots, [(0, 0)]);
    }

    #[test]
    fn lines_between_two_columns_do_not_cross_without_need() {
        let Layout { spots, .. } = layout(4, &[(0, 3), (1, 2)]);
        let rows: Vec<i32> = spots.iter().map(|(_, y)| y / (HEIGHT + BELOW)).collect();
        assert_eq!((rows[0] < rows[1], rows[3] < rows[2]), (true, true), "{rows:?}");
    }

    #[test]
    fn a_long_chain_of_many_objects_is_placed() {
        let edges: Vec<(usize, usize)> = (0..999).map(|at| (at, at + 1)).collect();
        assert_eq!(columns(1_000, &edges)[999], 999);
    }
}
