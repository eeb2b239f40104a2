//! Parses query parameters.

use std::num::{IntErrorKind, ParseIntError};

use crate::{
    kinds,
    status::ApiError,
    storage::{FieldSelector, LabelSelector},
};

/// How the server handles unknown fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The maximum duration of a watch in seconds. A longer duration could overflow the clock.
const LONGEST: u64 = 24 * 60 * 60;

/// The parameters of a request.
#[expect(clippy::struct_excessive_bools, reason = "each field is a separate parameter")]
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) watch: bool,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) resource_version: String,
    pub(crate) resource_version_match: String,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: bool,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) dry_run: bool,
    pub(crate) field_manager: String,
    pub(crate) force: bool,
    pub(crate) validation: FieldValidation,
    pub(crate) propagation: Option<String>,
    pub(crate) grace_period: Option<i64>,
    pub(crate) include_object: String,
    pub(crate) container: String,
    pub(crate) follow: bool,
    pub(crate) tail_lines: Option<usize>,
}

impl Options {
    /// Reads a query.
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        let mut options = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let flag = matches!(&*value, "true" | "1");
            match &*name {
                "watch" => options.watch = flag,
                "labelSelector" => {
                    options.labels = labels(&value)?;
                }
                "fieldSelector" => {
                    options.fields = FieldSelector::parse(&value).map_err(ApiError::bad_request)?;
                }
                "limit" => options.limit = usize::try_from(number(&value)?).unwrap_or_default(),
                "continue" => options.continue_token = value.into_owned(),
                "resourceVersion" => options.resource_version = value.into_owned(),
                "resourceVersionMatch" => options.resource_version_match = value.into_owned(),
                "allowWatchBookmarks" => options.bookmarks = flag,
                "sendInitialEvents" => options.initial_events = flag,
                "timeoutSeconds" => {
                    // Treat a negative timeout as zero, which ends the watch at once.
                    let seconds = u64::try_from(number(&value)?).unwrap_or_default();
                    options.timeout_seconds = Some(seconds.min(LONGEST));
                }
                "dryRun" => options.dry_run = dry_run(&value)?,
                "fieldManager" => options.field_manager = value.into_owned(),
                "force" => options.force = flag,
                "fieldValidation" => options.validation = validation(&value)?,
                "propagationPolicy" => options.propagation = Some(value.into_owned()),
                "gracePeriodSeconds" => options.grace_period = Some(number(&value)?),
                "container" => options.container = value.into_owned(),
                "follow" => options.follow = flag,
                "tailLines" => options.tail_lines = usize::try_from(number(&value)?).ok(),
                "includeObject" => options.include_object = value.into_owned(),
                _ => {}
            }
        }
        if options.field_manager.len() > 128 {
            return Err(ApiError::bad_request("fieldManager: Too long: may not be more than 128 bytes"));
        }
        Ok(options)
    }
}

/// Parses a label selector. Refuses invalid labels.
fn labels(text: &str) -> Result<LabelSelector, ApiError> {
    let selector = LabelSelector::parse(text).map_err(ApiError::bad_request)?;
    let wrong = selector.named().find_map(|(key, value)| kinds::wrong_label(key, value));
    match wrong {
        None => Ok(selector),
        Some(cause) => Err(ApiError::bad_request(format!("unable to parse requirement: {}", cause.message))),
    }
}

/// Parses a whole number, with Go's error messages.
fn number(value: &str) -> Result<i64, ApiError> {
    value.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        ApiError::bad_request(format!("strconv.ParseInt: parsing {value:?}: {why}"))
    })
}

fn dry_run(value: &str) -> Result<bool, ApiError> {
    match value {
        "" => Ok(false),
        "All" => Ok(true),
        other => Err(ApiError::bad_request(format!("dryRun: Unsupported value: {other:?}: supported values: \"All\""))),
    }
}

fn validation(value: &str) -> Result<FieldValidation, ApiError> {
    match value {
        "Ignore" => Ok(FieldValidation::Ignore),
        "" | "Warn" => Ok(FieldValidation::Warn),
        "Strict" => Ok(FieldValidation::Strict),
        other => Err(ApiError::bad_request(format!(
            "fieldValidation: Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_number_is_refused_and_a_long_time_is_capped() {
        for query in ["timeoutSeconds=soon", "limit=many", "limit=1.5", "gracePeriodSeconds=", "limit=1e3"] {
            assert_eq!(Options::parse(query).unwrap_err().code, 400, "{query}");
        }
        let error = Options::parse("timeoutSeconds=18446744073709551615").unwrap_err();
        assert_eq!(error.message, "strconv.ParseInt: parsing \"18446744073709551615\": value out of range");
        let longest = Options::parse("timeoutSeconds=9223372036854775807").unwrap();
        assert_eq!(longest.timeout_seconds, Some(LONGEST));
        assert_eq!(Options::parse("timeoutSeconds=-1&limit=-1").unwrap().timeout_seconds, Some(0));
        assert_eq!(Options::parse("limit=500").unwrap().limit, 500);
    }

    #[test]
    fn a_selector_that_does_not_parse_is_refused() {
        for selector in ["a%3Db%3Dc", "a+b", "%3Da", "a+in+(b", "a%3Db,", "a+in+b", "!", "A_B/c/d%3De"] {
            assert_eq!(Options::parse(&format!("labelSelector={selector}")).unwrap_err().code, 400, "{selector}");
        }
    }
}
