//! Keeps the language of pages and comments plain. Counts three sorts of sentences that engineers often read twice:
//! sentences with a relative clause as the subject, with an old-fashioned word, or with more than [`LONGEST`] words.

use std::fs;
use std::path::Path;

use crate::page::ROOT;
use crate::{links, sources};

const LONGEST: usize = 30;
/// The maximum number of these hard sentences in a thousand sentences.
const ACCEPTED: usize = 6;
const CODE: [&str; 4] = ["crds", "guest-policies", "host", "tests"];
/// If a sentence begins with one of these words, its subject is a relative clause. Only questions may begin with these
/// words.
const OPENINGS: [&str; 8] = ["what", "whatever", "who", "whoever", "nobody", "somebody", "none but", "whichever"];
const OLD: [&str; 9] =
    ["anew", "beside", "of which", "in whose stead", "comes of", "ours", "theirs", "stranger", "strangers"];

/// A sentence, with its file and its line.
struct Sentence {
    place: String,
    text: String,
}

/// Fails if too many sentences are hard to read. The message contains the ten worst sentences.
pub(crate) fn check() {
    let mut all = Vec::new();
    for page in links::below(&Path::new(ROOT).join("docs")) {
        collect(&page, &mut all, prose);
    }
    for file in CODE.iter().flat_map(|folder| sources::below(&Path::new(ROOT).join(folder))) {
        let is_built = file.components().any(|part| part.as_os_str() == "target");
        if !is_built {
            collect(&file, &mut all, comment);
        }
    }
    assert!(all.len() > 5000, "only {} sentences were found", all.len());
    let mut hard: Vec<(usize, &Sentence)> = all.iter().map(|it| (weight(&it.text), it)).filter(|it| it.0 > 0).collect();
    hard.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let worst: Vec<String> = hard.iter().take(10).map(|(_, it)| format!("{}: {}", it.place, it.text)).collect();
    let (count, most) = (hard.len(), all.len() * ACCEPTED / 1000);
    assert!(
        count <= most,
        "{count} of {total} sentences are hard to read, but at most {most} may be:\n{worst}",
        total = all.len(),
        worst = worst.join("\n")
    );
}

/// Returns a number that tells how hard a sentence is to read: 0 for a plain sentence.
fn weight(sentence: &str) -> usize {
    let words: Vec<String> = sentence.split_whitespace().map(str::to_lowercase).collect();
    let text = format!(" {} ", words.join(" ").replace([',', ';', ':', '.'], ""));
    let is_question = sentence.ends_with('?');
    let opens = !is_question && OPENINGS.iter().any(|opening| text.starts_with(&format!(" {opening} ")));
    let old = OLD.iter().filter(|old| text.contains(&format!(" {old} "))).count();
    words.len().saturating_sub(LONGEST) + 10 * (usize::from(opens) + old)
}

/// Returns the text of a line of a page.
///
/// Returns `None` for a line of a table, a heading or a comment: such a line ends a paragraph.
fn prose(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let item = line.strip_prefix("- ").unwrap_or(line);
    (!item.is_empty() && !item.starts_with(['|', '#', '<'])).then_some(item)
}

/// Returns the text of a line of code if the line is a comment. Returns `None` for any other line, which ends a
/// paragraph.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']).trim();
    (!text.is_empty() && !text.starts_with(['|', '#'])).then_some(text)
}

/// Adds the sentences of a file. Skips code between fences.
fn collect(file: &Path, all: &mut Vec<Sentence>, text_of: fn(&str) -> Option<&str>) {
    let name = file.strip_prefix(ROOT).unwrap_or(file).display().to_string();
    let content = fs::read_to_string(file).unwrap();
    let (mut open, mut fenced) = (None::<Sentence>, false);
    for (number, line) in content.lines().enumerate() {
        let text = text_of(line);
        let is_fence = text.is_some_and(|text| text.starts_with("```"));
        fenced ^= is_fence;
        let is_item = line.trim_start_matches([' ', '/', '!']).starts_with("- ");
        if is_item || is_fence || fenced || text.is_none() {
            all.extend(open.take());
        }
        let Some(text) = text.filter(|_| !is_fence && !fenced) else { continue };
        for word in text.split_whitespace() {
            let place = || format!("{name}:{}", number + 1);
            let sentence = open.get_or_insert_with(|| Sentence { place: place(), text: String::new() });
            sentence.text += if sentence.text.is_empty() { "" } else { " " };
            sentence.text += word;
            if word.ends_with(['.', '?', '!']) {
                all.extend(open.take());
            }
        }
    }
    all.extend(open);
}

#[cfg(test)]
mod tests {
    use super::weight;

    #[test]
    fn a_relative_clause_as_subject_an_old_word_and_a_long_sentence_are_hard_to_read() {
        assert_eq!(weight("Returns what the policy said."), 0);
        assert_eq!(weight("What happens on a 409?"), 0);
        assert_eq!(weight("What looks after policies waits."), 10);
        assert_eq!(weight("Reads the file beside it, anew."), 20);
        assert_eq!(weight(&"word ".repeat(33)), 3);
    }
}
