//! Parses Rust source just enough to see which files use each other.

use std::iter;

/// A name from a `use` declaration.
pub(crate) struct Use {
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
    pub(crate) is_public: bool,
}

/// Returns the text without comments, string literals and test code. Also replaces `$crate` by a name that no crate
/// has. The reason: the files that call a macro use the paths in the macro, but the file that defines the macro does
/// not use them.
pub(crate) fn reduced(text: &str) -> String {
    without_tests(&without_texts(text)).replace("$crate", "__caller")
}

fn without_texts(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(next) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(raw) = raw_text(rest) {
            raw
        } else if next == '"' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |(at, _)| at + 1)
        } else if rest.starts_with("'\"'") || rest.starts_with("'{'") || rest.starts_with("'}'") {
            3
        } else {
            0
        };
        if skipped == 0 {
            kept.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            rest = &rest[skipped..];
        }
    }
    kept
}

/// Returns the length of the raw string at the start of `text`, or `None` if `text` does not start with a raw string.
fn raw_text(text: &str) -> Option<usize> {
    let marks = text.strip_prefix('r')?.bytes().take_while(|byte| *byte == b'#').count();
    text[1 + marks..].starts_with('"').then_some(())?;
    let end = format!("\"{}", "#".repeat(marks));
    let from = 2 + marks;
    Some(text[from..].find(&end).map_or(text.len(), |at| from + at + end.len()))
}

fn without_tests(text: &str) -> String {
    let mut parts = text.split("#[cfg(test)]");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + &part[item_end(part)..])
}

/// Returns the end of the item at the start of `text`.
fn item_end(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            ';' if depth == 0 => return at + 1,
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the modules that the text declares and that have a separate file.
pub(crate) fn declared_modules(text: &str) -> Vec<String> {
    let statements = text.lines().map(str::trim).filter_map(|line| line.strip_suffix(';'));
    let names = statements.filter_map(|line| line.rsplit_once("mod ").map(|(before, name)| (before.trim(), name)));
    names
        .filter(|(before, _)| before.is_empty() || before.starts_with("pub"))
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Returns all names from all `use` declarations.
pub(crate) fn uses(text: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        let (before, tree) = (line.trim(), text[at + 4..].split(';').next().unwrap_or_default());
        // In an inline module, skip `use` declarations that do not begin with `crate`, because the parser does not
        // resolve `super` there.
        let is_inner = line.starts_with(' ') && !tree.starts_with("crate");
        if is_inner || !(before.is_empty() || before.starts_with("pub")) {
            continue;
        }
        for path in expanded(tree) {
            let (path, name) = path.split_once(" as ").map_or((path.as_str(), None), |(path, name)| (path, Some(name)));
            let mut path: Vec<String> = path.split("::").map(|step| step.trim().to_owned()).collect();
            if path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let last = path.last().cloned().unwrap_or_default();
            let name = name.map_or(last, |name| name.trim().to_owned());
            found.push(Use { name, path, is_public: before.starts_with("pub") });
        }
    }
    found
}

/// Expands a tree of names in a `use` declaration to single paths.
fn expanded(tree: &str) -> Vec<String> {
    let tree = tree.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((before, rest)) = tree.split_once('{') else { return vec![tree] };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let mut depth = 0;
    let parts = inner.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    let parts: Vec<&str> = parts.map(str::trim).filter(|part| !part.is_empty()).collect();
    parts.into_iter().flat_map(|part| expanded(&format!("{before}{part}"))).collect()
}

/// Returns all paths in code outside of `use` declarations, including single names.
pub(crate) fn paths(text: &str) -> Vec<Vec<String>> {
    let code: String = text.split(';').map(without_use).flat_map(|part| [part, ";"]).collect();
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c| !is_part(c)).map(|word| word.trim_matches(':'));
    let steps = words.map(|word| word.split("::").map(str::to_owned).collect::<Vec<_>>());
    steps.filter(|path| path.iter().all(|step| !step.is_empty() && !step.contains(':'))).collect()
}

/// Returns the part of a statement before the keyword `use`, or the whole statement if it does not contain `use`.
fn without_use(statement: &str) -> &str {
    let is_use = |(at, _): &(usize, &str)| {
        let before = statement[..*at].rsplit('\n').next().unwrap_or_default().trim();
        before.is_empty() || before.starts_with("pub")
    };
    statement.match_indices("use ").find(is_use).map_or(statement, |(at, _)| &statement[..at])
}

/// Returns whether a text defines an item of this name.
pub(crate) fn defines(text: &str, name: &str) -> bool {
    const ITEMS: [&str; 9] = ["struct", "enum", "trait", "fn", "type", "const", "static", "union", "macro_rules!"];
    let is_end = |c: char| !(c.is_alphanumeric() || c == '_');
    ITEMS.iter().any(|item| {
        let wanted = format!("{item} {name}");
        text.match_indices(&wanted).any(|(at, _)| {
            let after = text[at + wanted.len()..].chars().chain(iter::once(' ')).next().unwrap_or(' ');
            let before = text[..at].chars().next_back().unwrap_or(' ');
            is_end(after) && is_end(before)
        })
    })
}
