//! Writes the tables of benches into the performance page. On the page, two comments mark the section of each bench.

use std::{env, fs, path::Path, process::ExitCode};

use anyhow::Context;

/// The path of the performance page, relative to the top of the repository.
const PAGE: &str = "docs/reference/performance.md";

/// Prints a table. If the environment contains `UPDATE_PERFORMANCE`, also writes the table into the page between the
/// two comments of `section`.
pub fn publish(section: &str, table: &str) -> anyhow::Result<()> {
    println!("\n{table}");
    if env::var_os("UPDATE_PERFORMANCE").is_none() {
        return Ok(());
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    fs::write(&page, put(&text, section, table)?).with_context(|| page.display().to_string())
}

/// Prints a message for each bound that the bench missed. Returns the bench's exit code.
pub fn verdict(missed: &[String]) -> ExitCode {
    for missed in missed {
        eprintln!("missed: {missed}");
    }
    if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Replaces the text between the two comments of `section` with `table`.
fn put(text: &str, section: &str, table: &str) -> anyhow::Result<String> {
    let [begin, end] = [format!("<!-- {section} -->"), format!("<!-- /{section} -->")];
    let place = || {
        let (before, rest) = text.split_once(&begin)?;
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    };
    let (before, after) = place()
        .with_context(|| format!("the page {PAGE} has no section that begins with {begin} and ends with {end}"))?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", table.trim()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_section_is_replaced_and_the_others_stay() -> anyhow::Result<()> {
        let page = "a\n<!-- one -->\nold\n<!-- /one -->\nb\n<!-- two -->\n<!-- /two -->\n";
        let new = super::put(page, "one", "new\n")?;
        assert_eq!(new, "a\n<!-- one -->\n\nnew\n\n<!-- /one -->\nb\n<!-- two -->\n<!-- /two -->\n");
        assert!(super::put(page, "three", "").is_err());
        Ok(())
    }
}
