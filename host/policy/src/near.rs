//! Finds the name that somebody meant who mistyped it. What to say of it is for the caller.

/// The name that was probably meant, if one is near.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (written.chars().count() / 3).max(1);
    names
        .into_iter()
        .map(|name| (distance(written, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// How many letters were added, left out, changed or swapped with their neighbour; case is no difference.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let substituted = last[j] + usize::from(a[i] != b[j]);
            let mut best = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_hand_finds_its_name() {
        for written in ["logLevle", "loglevel", "logLevl", "llogLevel"] {
            assert_eq!(nearest(written, ["image", "logLevel"]), Some("logLevel"), "{written}");
        }
        assert_eq!(nearest("colour", ["image", "logLevel"]), None);
        assert_eq!(nearest("", ["image"]), None);
    }
}
