//! The grammar of a path:
//!
//! ```text
//! path  = name *step [ equal ] [ "?" ]
//! step  = "." name | "[" text "]" | "[" name "=" text "]"
//! equal = "[=" text "]"
//! name  = 1*( letter | digit | "_" | "-" )
//! text  = a JSON string, in double quotes
//! ```

use alloc::{borrow::ToOwned, string::String, vec::Vec};

/// Maximum number of paths of one need.
pub const MAX_FIELDS: usize = 32;
/// Maximum number of bytes of one path.
pub const MAX_BYTES: usize = 512;
/// Maximum number of characters of a path in a message.
const MAX_SHOWN: usize = 128;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `.name` or `["name"]`: a member of a map.
    Member(String),
    /// `[name="text"]`: the maps in a list that have the text in their member `name`.
    Items(String, String),
    /// `[="text"]`: the items of a list that equal the text, or a value that equals the text.
    Equal(String),
    /// `?`: whether the value exists.
    Present,
}

/// A reason why the paths of a need are not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A need has more paths than allowed.
    #[error("a need has at most {MAX_FIELDS} fields, but this one has {0}")]
    TooMany(usize),
    /// A text is not a valid path.
    #[error("`{}` is not the path of a field: {why}", shown(path))]
    Path {
        /// The path.
        path: String,
        /// The reason.
        why: PathError,
    },
}

/// A reason why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is too long.
    #[error("a path has at most {MAX_BYTES} bytes")]
    TooLong,
    /// A name is missing, or contains a character that needs quotes.
    #[error("write a name of letters, digits, `_` and `-` at byte {0}, and any other name as [\"name\"]")]
    Name(usize),
    /// A text in brackets is not a JSON string.
    #[error("write a text in double quotes at byte {0}, as in JSON")]
    Text(usize),
    /// A bracket is not closed.
    #[error("a `]` is missing at byte {0}")]
    Open(usize),
    /// The path continues in an invalid way.
    #[error("only `.` or `[` may follow at byte {0}; a path ends after `?`, and only `?` may follow [=\"text\"]")]
    Rest(usize),
}

/// Returns the beginning of a path, for messages.
fn shown(path: &str) -> String {
    match path.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => alloc::format!("{}…", path.get(..end).unwrap_or_default()),
        None => path.to_owned(),
    }
}

/// Reads a path.
pub(crate) fn parse(path: &str) -> Result<Vec<Step>, PathError> {
    if path.len() > MAX_BYTES {
        return Err(PathError::TooLong);
    }
    let mut reader = Reader { path, at: 0 };
    let mut steps = Vec::new();
    steps.push(Step::Member(reader.name()?));
    while reader.at < path.len() {
        let last = steps.last();
        let ends = matches!(last, Some(Step::Present));
        let start = reader.at;
        if !ends && reader.skip("?") {
            steps.push(Step::Present);
        } else if ends || matches!(last, Some(Step::Equal(_))) {
            return Err(PathError::Rest(start));
        } else if reader.skip(".") {
            steps.push(Step::Member(reader.name()?));
        } else if reader.skip("[=") {
            steps.push(Step::Equal(reader.closed_text()?));
        } else if reader.skip("[") {
            steps.push(if reader.rest().starts_with('"') {
                Step::Member(reader.closed_text()?)
            } else {
                let name = reader.name()?;
                if !reader.skip("=") {
                    return Err(PathError::Text(reader.at));
                }
                Step::Items(name, reader.closed_text()?)
            });
        } else {
            return Err(PathError::Rest(start));
        }
    }
    Ok(steps)
}

struct Reader<'a> {
    path: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.path.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn name(&mut self) -> Result<String, PathError> {
        let rest = self.rest();
        let is_other = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let name = rest.get(..rest.find(is_other).unwrap_or(rest.len())).unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(PathError::Name(self.at));
        }
        self.at += name.len();
        Ok(name)
    }

    /// Reads a text in double quotes, and the bracket after the text.
    fn closed_text(&mut self) -> Result<String, PathError> {
        let (start, rest) = (self.at, self.rest());
        let mut escaped = false;
        let is_end = |(_, c): &(usize, char)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        };
        let inner = rest.strip_prefix('"').ok_or(PathError::Text(start))?;
        let (end, _) = inner.char_indices().find(is_end).ok_or(PathError::Text(start))?;
        let quoted = rest.get(..end + 2).unwrap_or_default();
        let text = serde_json::from_str(quoted).map_err(|_| PathError::Text(start))?;
        self.at += quoted.len();
        if self.skip("]") { Ok(text) } else { Err(PathError::Open(self.at)) }
    }
}
