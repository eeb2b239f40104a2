//! Reads the blocks of shell commands on a documentation page. The first line of a block names the language `sh`, and
//! can contain a word after it. Tests select blocks by this word.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Returns those code blocks of a page that have one of the words `marks` after `sh`, in the order of the page. The
/// path `page` is relative to the top folder of the repository.
///
/// ````text
/// ```sh cluster
/// kubectl get kaos -A
/// ```
/// ````
pub fn blocks(page: &str, marks: &[&str]) -> Result<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let found = of(&text, marks);
    ensure!(!found.is_empty(), "{page} has no block that is marked {}", marks.join(" or "));
    Ok(found)
}

fn of(text: &str, marks: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.strip_prefix("```sh ").is_some_and(|mark| marks.contains(&mark)) {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push(block.join("\n") + "\n");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_marked_blocks_count_and_they_keep_their_order() {
        let page = "a\n```sh test\none\ntwo\n```\n```sh\nno\n```\n```sh cluster\nthree\n```\n```sh other\nno\n```\n";
        assert_eq!(super::of(page, &["test", "cluster"]), ["one\ntwo\n", "three\n"]);
    }
}
