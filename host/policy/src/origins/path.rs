//! Paths in manifests, objects and settings: `spec.ports[0]`, `annotations["example.com/role"]`.

use std::fmt::Write;

use serde_json::Value;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    Name(String),
    Index(usize),
}

impl PathStep {
    /// Returns the value to which the step leads.
    pub(crate) fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Name(name) => value.get(name),
            Self::Index(index) => value.get(index),
        }
    }

    /// Returns the name, or `None` if the step is a position in a list.
    pub(crate) fn name(&self) -> Option<&str> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }
}

/// Formats a path.
pub(crate) fn written(path: &[PathStep]) -> String {
    let mut text = String::new();
    for step in path {
        append(&mut text, step);
    }
    text
}

/// Formats a path of selectors.
pub(crate) fn shown(path: &[Selector]) -> String {
    let mut text = String::new();
    for selector in path {
        match selector {
            Selector::Step(step) => append(&mut text, step),
            Selector::Item(name) => {
                let _ = write!(text, "[name=\"{name}\"]");
            }
        }
    }
    text
}

/// Appends a step to a formatted path.
pub(super) fn append(text: &mut String, step: &PathStep) {
    match step {
        PathStep::Index(index) => {
            let _ = write!(text, "[{index}]");
        }
        PathStep::Name(name) if name.is_empty() || name.contains(['.', '/', '[', ' ']) => {
            let _ = write!(text, "[\"{name}\"]");
        }
        PathStep::Name(name) => {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(name);
        }
    }
}

/// Parses a path in the form of the guard's messages, which contain positions of list items instead of names.
pub(crate) fn steps(text: &str) -> Option<Vec<PathStep>> {
    resolve(&parse(text)?, &Value::Null)
}

/// One step of a path in a text of the contract: a [`PathStep`], or the `name` of a list item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selector {
    Step(PathStep),
    Item(String),
}

impl Selector {
    /// Returns the step, or `None` for the name of a list item.
    pub(crate) fn as_step(&self) -> Option<&PathStep> {
        if let Self::Step(step) = self { Some(step) } else { None }
    }

    /// Converts the selector to a step in a value. Returns `None` if no list item has the name.
    pub(super) fn step(&self, value: &Value) -> Option<PathStep> {
        match self {
            Self::Step(step) => Some(step.clone()),
            Self::Item(name) => value.as_array()?.iter().position(|item| item["name"] == **name).map(PathStep::Index),
        }
    }
}

/// Converts a path to steps in a value. Returns `None` if the path names a list item that the value does not have.
pub(super) fn resolve(path: &[Selector], value: &Value) -> Option<Vec<PathStep>> {
    let (mut here, mut steps) = (Some(value), Vec::with_capacity(path.len()));
    for selector in path {
        let step = selector.step(here.unwrap_or(&Value::Null))?;
        here = here.and_then(|value| step.of(value));
        steps.push(step);
    }
    Some(steps)
}

/// Parses a path. Returns `None` if the text is not a path.
pub(crate) fn parse(text: &str) -> Option<Vec<Selector>> {
    let (mut steps, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        if let Some((name, after)) = rest.strip_prefix("[name=\"").and_then(|quoted| quoted.split_once("\"]")) {
            steps.push(Selector::Item(name.to_owned()));
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix("[\"").and_then(|quoted| quoted.split_once("\"]")) {
            steps.push(Selector::Step(PathStep::Name(name.to_owned())));
            rest = after;
        } else if let Some((index, after)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            let digits = index.bytes().all(|byte| byte.is_ascii_digit());
            steps.push(Selector::Step(PathStep::Index(index.parse().ok().filter(|_| digits)?)));
            rest = after;
        } else {
            let name = match rest.strip_prefix('.') {
                Some(name) if !steps.is_empty() => name,
                None if steps.is_empty() => rest,
                _ => return None,
            };
            let (name, after) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
            if name.is_empty() || name.contains([' ', ']', '"']) {
                return None;
            }
            steps.push(Selector::Step(PathStep::Name(name.to_owned())));
            rest = after;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_reads_what_it_writes() {
        for text in
            ["", "spec", "spec.ports[0].port", r#"metadata.annotations["example.com/role"]"#, r#"["a.b"][3][4].c"#]
        {
            assert_eq!(written(&steps(text).unwrap()), text);
        }
    }

    #[test]
    fn an_item_is_selected_by_its_name() {
        let pod = json!({"containers": [{"image": "x"}, {"name": "web"}]});
        let path = parse("containers[name=\"web\"].image").unwrap();
        assert_eq!(written(&resolve(&path, &pod).unwrap()), "containers[1].image");
        assert_eq!(resolve(&parse("containers[name=\"db\"]").unwrap(), &pod), None);
        assert_eq!(resolve(&parse("volumes[name=\"web\"]").unwrap(), &pod), None);
    }

    #[test]
    fn a_text_that_is_no_path_is_refused() {
        for text in [
            ".",
            "a.",
            "a..b",
            ".a",
            "a[",
            "a[]",
            "a[+1]",
            "a[-1]",
            "a[x]",
            "a b",
            "a[0]b",
            "a]",
            "a[99999999999999999999]",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
