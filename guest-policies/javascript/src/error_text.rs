//! Turns an exception of the script into a message with a line, a column and a remedy.

use rquickjs::{CaughtError, Function};

/// An exception as text.
pub(crate) struct ErrorText {
    name: String,
    message: String,
    stack: String,
}

impl ErrorText {
    pub(crate) fn of(caught: &CaughtError<'_>) -> Self {
        match caught {
            CaughtError::Exception(exception) => {
                let name = exception.as_object().get("name").unwrap_or_else(|_| "Error".to_owned());
                let message = exception.message().unwrap_or_default();
                Self { name, message, stack: exception.stack().unwrap_or_default() }
            }
            CaughtError::Value(value) if value.is_null() => Self::new("InternalError", "out of memory"),
            CaughtError::Value(value) => {
                let text = value.as_string().and_then(|text| text.to_string().ok());
                Self::new("Error", &text.unwrap_or_else(|| "the script threw a value that is not an Error".to_owned()))
            }
            CaughtError::Error(error) => Self::new("InternalError", &error.to_string()),
        }
    }

    fn new(name: &str, message: &str) -> Self {
        Self { name: name.to_owned(), message: message.to_owned(), stack: String::new() }
    }

    /// Returns the message. `called` has the name and the position of the script's function that the host called. If
    /// the exception has no position, the message contains the position of this function.
    pub(crate) fn told(&self, file: &str, called: Option<(&str, &str)>) -> String {
        let Self { name, message, stack } = self;
        let place = place(file, stack).or(called.map(|(_, place)| place)).unwrap_or("1:1");
        let during = called.map(|(name, _)| format!(" in {name}")).unwrap_or_default();
        format!("{file}:{place}: {name}{during}: {message}: {}", self.remedy())
    }

    fn remedy(&self) -> &'static str {
        let Self { name, message, .. } = self;
        match name.as_str() {
            _ if message.contains("a policy is a pure function") => "remove the call",
            _ if message.contains("call stack") => {
                "use a loop instead of recursion, or write flatter expressions: the stack holds about 100 calls"
            }
            _ if message.contains("out of memory") => "build smaller values, or raise limits.memory in policy.yaml",
            "SyntaxError" => "correct the syntax",
            "ReferenceError" if message.contains("module") => "a script has one file: copy the code into policy.js",
            "ReferenceError" => "define the name, or correct its spelling",
            "TypeError" => "check the value before you use it, for example with `?.`",
            _ => "catch the error, or refuse the object with `throw kaos.invalid(path, message)`",
        }
    }
}

/// Returns `LINE:COLUMN` of the first frame in the script's file.
fn place<'a>(file: &str, stack: &'a str) -> Option<&'a str> {
    stack.lines().find_map(|line| {
        let (_, rest) = line.rsplit_once(&format!("{file}:"))?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(rest.len());
        rest.get(..end).filter(|place| !place.is_empty())
    })
}

/// Returns the line and the column of a function's definition.
pub(crate) fn defined_at(function: &Function<'_>) -> (u32, u32) {
    let number =
        |name: &str| function.as_object().and_then(|it| it.get::<_, Option<u32>>(name).ok()).flatten().unwrap_or(1);
    (number("lineNumber"), number("columnNumber"))
}

/// Returns `LINE:COLUMN` of a function's definition.
pub(crate) fn exported_at(function: &Function<'_>) -> String {
    let (line, column) = defined_at(function);
    format!("{line}:{column}")
}
