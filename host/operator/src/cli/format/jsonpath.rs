//! Templates in the form of kubectl's `-o jsonpath`: text, expressions in braces, and ranges.
//!
//! An expression is a `JSONPath`, such as `{.items[*].name}`, or a text in quotes, such as `{"\n"}`. For each value
//! that `EXPRESSION` selects, `{range EXPRESSION}` repeats the part of the template up to `{end}`.

use jsonpath_rust::{
    parser::{model::JpQuery, parse_json_path},
    query::js_path_process,
};
use serde_json::Value;

/// The error for an invalid template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TemplateError {
    /// A brace has no counterpart.
    #[error("the template has an opening brace without a closing brace")]
    Open,
    /// A `{range}` has no `{end}`, or an `{end}` has no `{range}`.
    #[error("the template must have one {{end}} for each {{range}}")]
    Unpaired,
    /// An expression is no `JSONPath`.
    #[error("`{expression}` is not a JSONPath expression: {why}")]
    Expression {
        /// The expression.
        expression: String,
        /// The parser's error.
        why: String,
    },
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq)]
enum TemplatePart {
    Text(String),
    Path(JpQuery),
    Range(JpQuery, Vec<TemplatePart>),
}

/// A token of a template.
#[derive(Debug, PartialEq)]
enum Token {
    Text(String),
    Expression(String),
}

impl Template {
    /// Parses a template. A template without braces is one expression, as in kubectl.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let text = if text.contains('{') { text.to_owned() } else { format!("{{{text}}}") };
        let mut tokens = tokens(&text)?.into_iter();
        let (parts, is_ended) = parts(&mut tokens)?;
        if is_ended { Err(TemplateError::Unpaired) } else { Ok(Self(parts)) }
    }

    /// Replaces each expression by the values that the expression selects, and returns the text.
    pub(crate) fn fill(&self, value: &Value) -> String {
        let mut text = String::new();
        fill(&self.0, value, &mut text);
        text
    }
}

fn fill(parts: &[TemplatePart], value: &Value, text: &mut String) {
    for part in parts {
        match part {
            TemplatePart::Text(literal) => text.push_str(literal),
            TemplatePart::Path(path) => {
                let selected: Vec<String> = select(path, value).into_iter().map(shown).collect();
                text.push_str(&selected.join(" "));
            }
            TemplatePart::Range(path, inner) => {
                for each in select(path, value) {
                    fill(inner, each, text);
                }
            }
        }
    }
}

fn select<'a>(path: &JpQuery, value: &'a Value) -> Vec<&'a Value> {
    js_path_process(path, value).unwrap_or_default().into_iter().map(jsonpath_rust::query::QueryRef::val).collect()
}

/// Formats a value as kubectl does: texts without quotes, and everything else as JSON.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Parses tokens up to an `{end}` or the last token. Returns the parts, and whether the parser stopped at an `{end}`.
fn parts(tokens: &mut std::vec::IntoIter<Token>) -> Result<(Vec<TemplatePart>, bool), TemplateError> {
    let mut found = Vec::new();
    while let Some(token) = tokens.next() {
        let expression = match token {
            Token::Text(text) => {
                found.push(TemplatePart::Text(text));
                continue;
            }
            Token::Expression(expression) => expression,
        };
        if expression == "end" {
            return Ok((found, true));
        }
        if let Some(over) = expression.strip_prefix("range ") {
            let path = path(over.trim())?;
            let (inner, is_ended) = parts(tokens)?;
            if !is_ended {
                return Err(TemplateError::Unpaired);
            }
            found.push(TemplatePart::Range(path, inner));
        } else if let Some(literal) = literal(&expression) {
            found.push(TemplatePart::Text(literal));
        } else {
            found.push(TemplatePart::Path(path(&expression)?));
        }
    }
    Ok((found, false))
}

/// Parses an expression. kubectl lets users leave out the `$`, and write `@` for the current value.
fn path(expression: &str) -> Result<JpQuery, TemplateError> {
    let rest = expression.strip_prefix(['$', '@']).unwrap_or(expression);
    let rooted = if rest.is_empty() || rest.starts_with(['.', '[']) { format!("${rest}") } else { format!("$.{rest}") };
    parse_json_path(&rooted)
        .map_err(|error| TemplateError::Expression { expression: expression.to_owned(), why: last_line(&error) })
}

/// Returns the last line of a parser's error. This line contains the message: above it, the parser draws the position
/// in the expression.
fn last_line(error: &impl ToString) -> String {
    let text = error.to_string();
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().trim_start_matches("= ").to_owned()
}

/// Returns the text of a literal in quotes.
fn literal(expression: &str) -> Option<String> {
    let inner = ['"', '\''].into_iter().find_map(|quote| expression.strip_prefix(quote)?.strip_suffix(quote))?;
    Some(inner.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\""))
}

/// Splits a template at its braces. Braces inside of quotes belong to the text in the quotes.
fn tokens(text: &str) -> Result<Vec<Token>, TemplateError> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        if !before.is_empty() {
            tokens.push(Token::Text(before.to_owned()));
        }
        let end = closing(after).ok_or(TemplateError::Open)?;
        tokens.push(Token::Expression(after[..end].trim().to_owned()));
        rest = &after[end + 1..];
    }
    if !rest.is_empty() {
        tokens.push(Token::Text(rest.to_owned()));
    }
    Ok(tokens)
}

/// Returns the position of the brace that closes an expression.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (position, character) in text.char_indices() {
        match (quote, character) {
            (None, '}') => return Some(position),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), other) if open == other => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(template: &str) -> String {
        let value = json!({"items": [
            {"name": "a", "ready": true, "labels": {"x": 1}},
            {"name": "b", "ready": false, "why": "it {waits}"},
        ], "total": 2});
        Template::parse(template).unwrap().fill(&value)
    }

    #[test]
    fn templates_select_values_as_kubectl_does() {
        for (template, expected) in [
            ("{.items[*].name}", "a b"),
            (".items[0].name", "a"),
            ("items[1].ready", "false"),
            ("{$.total} objects", "2 objects"),
            ("{.items[?(@.name == 'b')].why}", "it {waits}"),
            ("{.items[0].labels}", "{\"x\":1}"),
            ("{.nothing}", ""),
            ("{range .items[*]}{.name}={@.ready}{\"\\n\"}{end}", "a=true\nb=false\n"),
            ("{range .items[*]}{'}'}{end}", "}}"),
        ] {
            assert_eq!(filled(template), expected, "{template}");
        }
    }

    #[test]
    fn invalid_templates_are_refused_with_the_reason() {
        assert_eq!(Template::parse("{.a"), Err(TemplateError::Open));
        assert_eq!(Template::parse("{range .a}{.b}"), Err(TemplateError::Unpaired));
        assert_eq!(Template::parse("{.a}{end}"), Err(TemplateError::Unpaired));
        let error = Template::parse("{.a[}").unwrap_err().to_string();
        assert!(error.starts_with("`.a[` is not a JSONPath expression: "), "{error}");
    }
}
