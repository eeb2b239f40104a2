//! Checks the links between the pages. The linked file and the linked heading must exist.

use std::fs;
use std::path::{Path, PathBuf};

use crate::page::ROOT;

const FOLDERS: [&str; 2] = ["docs", "guest-policies/template"];

/// Returns each broken link, with the page that contains it.
pub(crate) fn broken() -> Vec<String> {
    let mut pages: Vec<PathBuf> = FOLDERS.iter().flat_map(|folder| below(&Path::new(ROOT).join(folder))).collect();
    pages.extend(marked(Path::new(ROOT)));
    assert!(pages.len() > 30, "{}", pages.len());
    pages.iter().flat_map(|page| broken_on(page)).collect()
}

fn broken_on(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let prose: String = text.split("```").step_by(2).collect();
    // Leave out text between backticks, because code contains no links.
    let prose: String = prose.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    let leads = |link: &&str| {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
        let is_page = target.extension().is_some_and(|of| of == "md");
        target.exists() && (heading.is_empty() || !is_page || headings(&target).iter().any(|it| it == heading))
    };
    let broken = links.filter(|link| !link.starts_with("http") && !leads(link));
    broken.map(|link| format!("{}: {link}", page.strip_prefix(ROOT).unwrap().display())).collect()
}

/// Returns the anchors of a page.
fn headings(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings.map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// Returns every page below a folder.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let mut pages = marked(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(entries.filter(|path| path.is_dir()).flat_map(|folder| below(&folder)));
    pages
}

fn marked(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|of| of == "md")).collect()
}
