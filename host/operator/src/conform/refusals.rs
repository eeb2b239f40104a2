//! Counts the refusals by the field or the object that they name.

use std::collections::BTreeMap;

use kaos_policy::contract::Refusal;

use super::results::{End, FrequentRefusal};

/// The maximum number of different fields and objects that the count distinguishes.
const MAX_COUNTED: usize = 1000;
/// The maximum number of fields and objects that a report lists.
const MAX_LISTED: usize = 5;

/// The refusals so far.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<(End, String), (String, u64)>);

impl Refusals {
    /// Counts the refusal of one object. Counts a field only once for each object.
    pub(super) fn add(&mut self, refusal: &Refusal) {
        let mut named: BTreeMap<String, String> = BTreeMap::new();
        match refusal {
            Refusal::Invalid(violations) => {
                for violation in violations {
                    named.entry(without_positions(&violation.path)).or_insert_with(|| violation.message.clone());
                }
            }
            Refusal::Waiting(blockers) => {
                for blocker in blockers {
                    let about = format!("{}: {}", blocker.on.kind, blocker.reason);
                    named.entry(about).or_insert_with(|| blocker.message.clone());
                }
            }
            Refusal::Unsupported(message) => drop(named.insert(String::new(), message.clone())),
        }
        for (about, message) in named {
            let key = (End::of(refusal), about);
            if self.0.len() < MAX_COUNTED || self.0.contains_key(&key) {
                self.0.entry(key).or_insert((message, 0)).1 += 1;
            }
        }
    }

    /// Returns the most frequent refusals, the most frequent first.
    pub(super) fn most_frequent(self) -> Vec<FrequentRefusal> {
        let refusal = |((end, about), (message, objects))| FrequentRefusal { end, about, message, objects };
        let mut all: Vec<FrequentRefusal> = self.0.into_iter().map(refusal).collect();
        all.sort_by_key(|refusal| std::cmp::Reverse(refusal.objects));
        all.truncate(MAX_LISTED);
        all
    }
}

/// Replaces the position of each list item in a path: `spec.env[3].name` becomes `spec.env[].name`.
fn without_positions(path: &str) -> String {
    let mut parts = path.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push('[');
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

#[cfg(test)]
mod tests {
    use kaos_policy::contract::Violation;

    use super::*;

    fn invalid(fields: &[(&str, &str)]) -> Refusal {
        let violation =
            |(path, message): &(&str, &str)| Violation { path: (*path).to_owned(), message: (*message).to_owned() };
        Refusal::Invalid(fields.iter().map(violation).collect())
    }

    #[test]
    fn refusals_of_one_field_count_together_and_once_for_each_object() {
        let mut refusals = Refusals::default();
        refusals.add(&invalid(&[("spec.title", "is blank")]));
        refusals.add(&invalid(&[("spec.tags[0]", "is long"), ("spec.tags[7]", "is short")]));
        refusals.add(&invalid(&[("spec.tags[2]", "is odd")]));
        refusals.add(&Refusal::Unsupported("too old".to_owned()));
        let told: Vec<_> = refusals.most_frequent().into_iter().map(|it| (it.about, it.message, it.objects)).collect();
        let line = |about: &str, message: &str, objects| (about.to_owned(), message.to_owned(), objects);
        assert_eq!(
            told,
            [line("spec.tags[]", "is long", 2), line("spec.title", "is blank", 1), line("", "too old", 1)]
        );
    }

    #[test]
    fn a_key_in_brackets_stays_in_the_path() {
        assert_eq!(without_positions("data[\"a.b\"][12].c[name=\"d\"]"), "data[\"a.b\"][].c[name=\"d\"]");
    }
}
