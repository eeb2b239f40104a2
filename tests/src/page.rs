//! Figures that benches write into the page of figures, each between marks of its own.

use std::{env, fs, path::Path, process::ExitCode};

use anyhow::Context;

/// The page, below the root of the repository.
const PAGE: &str = "docs/reference/performance.md";

/// Prints a table; with `UPDATE_PERFORMANCE` in the environment it goes into the page, too, between the marks of
/// `section`.
pub fn publish(section: &str, table: &str) -> anyhow::Result<()> {
    println!("\n{table}");
    if env::var_os("UPDATE_PERFORMANCE").is_none() {
        return Ok(());
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    fs::write(&page, put(&text, section, table)?).with_context(|| page.display().to_string())
}

/// Tells which aims were missed, and how a bench ends with that.
pub fn verdict(missed: &[String]) -> ExitCode {
    for missed in missed {
        eprintln!("missed: {missed}");
    }
    if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The text with `table` between the marks of `section`, in place of what was there.
fn put(text: &str, section: &str, table: &str) -> anyhow::Result<String> {
    let [begin, end] = [format!("<!-- {section} -->"), format!("<!-- /{section} -->")];
    let place = || {
        let (before, rest) = text.split_once(&begin)?;
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    };
    let (before, after) = place().with_context(|| format!("{PAGE} has no {begin} … {end}"))?;
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
