//! Parses label selectors in query parameters, with the errors of a real server.

use super::requirement::{Operator, Requirement};

/// Characters that are tokens on their own. All other characters form words, and spaces separate the words.
const SPECIAL: &str = "=!(),<>";

/// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut tokens = Tokens(text.trim());
    let mut found = Vec::new();
    while !tokens.peek().is_empty() {
        let first = tokens.peek();
        if !starts(first) {
            return Err(format!("found '{first}', expected: !, identifier, or 'end of string'"));
        }
        found.push(requirement(&mut tokens).map_err(|why| format!("unable to parse requirement: {why}"))?);
        match tokens.take() {
            "" => break,
            "," if !starts(tokens.peek()) => {
                return Err(format!("found '{}', expected: identifier after ','", tokens.peek()));
            }
            "," => {}
            other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
        }
    }
    Ok(found)
}

/// Returns whether a requirement can start with this token.
fn starts(token: &str) -> bool {
    token == "!" || is_word(token)
}

fn is_word(token: &str) -> bool {
    token.chars().next().is_some_and(|first| !SPECIAL.contains(first))
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    let is_absent = tokens.peek() == "!";
    if is_absent {
        tokens.take();
    }
    let key = word(tokens)?;
    let (operator, values) = if is_absent {
        (Operator::Absent, Vec::new())
    } else {
        match tokens.peek() {
            "" | "," => (Operator::Exists, Vec::new()),
            _ => comparison(tokens)?,
        }
    };
    Ok(Requirement { key, operator, values })
}

fn comparison(tokens: &mut Tokens<'_>) -> Result<(Operator, Vec<String>), String> {
    Ok(match tokens.take() {
        "=" | "==" => (Operator::In, vec![value(tokens)?]),
        "!=" => (Operator::NotIn, vec![value(tokens)?]),
        "in" => (Operator::In, set(tokens)?),
        "notin" => (Operator::NotIn, set(tokens)?),
        ">" => (Operator::Greater, vec![number(tokens)?]),
        "<" => (Operator::Less, vec![number(tokens)?]),
        other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
    })
}

fn word(tokens: &mut Tokens<'_>) -> Result<String, String> {
    match tokens.take() {
        token if is_word(token) => Ok(token.to_owned()),
        token => Err(format!("found '{token}', expected: identifier")),
    }
}

/// Reads a value, which can be empty.
fn value(tokens: &mut Tokens<'_>) -> Result<String, String> {
    if matches!(tokens.peek(), "" | ",") { Ok(String::new()) } else { word(tokens) }
}

fn number(tokens: &mut Tokens<'_>) -> Result<String, String> {
    let text = value(tokens)?;
    match text.parse::<i64>() {
        Ok(_) => Ok(text),
        Err(_) => Err("for 'Gt', 'Lt' operators, the value must be an integer".into()),
    }
}

/// Reads values in parentheses. Reads a missing value as the empty text.
fn set(tokens: &mut Tokens<'_>) -> Result<Vec<String>, String> {
    match tokens.take() {
        "(" if tokens.peek() == ")" => return Err("for 'in', 'notin' operators, values set can't be empty".into()),
        "(" => {}
        other => return Err(format!("found '{other}' expected: '('")),
    }
    let mut values = Vec::new();
    loop {
        values.push(match tokens.peek() {
            "," | ")" => String::new(),
            _ => word(tokens)?,
        });
        match tokens.take() {
            "," => {}
            ")" => return Ok(values),
            other => return Err(format!("found '{other}', expected: ',' or ')'")),
        }
    }
}

/// The remaining text, without leading spaces.
struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    /// Returns the next word or symbol without removing it. Returns the empty text at the end.
    fn peek(&self) -> &'a str {
        let text = self.0;
        let symbol = ["==", "!="].into_iter().find(|symbol| text.starts_with(*symbol));
        let length = match text.chars().next() {
            Some(first) if SPECIAL.contains(first) => symbol.map_or(1, str::len),
            _ => text.find(|c: char| c.is_whitespace() || SPECIAL.contains(c)).unwrap_or(text.len()),
        };
        &text[..length]
    }

    fn take(&mut self) -> &'a str {
        let token = self.peek();
        self.0 = self.0[token.len()..].trim_start();
        token
    }
}

#[cfg(test)]
mod tests {
    use super::requirements;

    #[test]
    fn an_invalid_selector_is_refused_with_the_found_text() {
        for (text, why) in [
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("=b", "found '=', expected: !, identifier, or 'end of string'"),
            ("a=b,", "found '', expected: identifier after ','"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a in ()", "unable to parse requirement: for 'in', 'notin' operators, values set can't be empty"),
            ("a>b", "unable to parse requirement: for 'Gt', 'Lt' operators, the value must be an integer"),
        ] {
            assert_eq!(requirements(text).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn valid_selectors_are_parsed() {
        for (text, count) in [("", 0), (" a ", 1), ("a=,b!=", 2), ("in in (in,,x),!notin", 2), ("a/b.c>1,d<2", 2)] {
            assert_eq!(requirements(text).unwrap().len(), count, "{text}");
        }
    }
}
