//! Query parameters.

use crate::{
    status::ApiError,
    storage::{FieldSelector, LabelSelector},
};

/// What to do with unknown fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The parameters of a request.
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
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
                    options.labels = LabelSelector::parse(&value).map_err(ApiError::bad_request)?;
                }
                "fieldSelector" => {
                    options.fields = FieldSelector::parse(&value).map_err(ApiError::bad_request)?;
                }
                "limit" => options.limit = value.parse().unwrap_or_default(),
                "continue" => options.continue_token = value.into_owned(),
                "resourceVersion" => options.resource_version = value.into_owned(),
                "resourceVersionMatch" => options.resource_version_match = value.into_owned(),
                "allowWatchBookmarks" => options.bookmarks = flag,
                "sendInitialEvents" => options.initial_events = flag,
                "timeoutSeconds" => options.timeout_seconds = value.parse().ok(),
                "dryRun" => options.dry_run = dry_run(&value)?,
                "fieldManager" => options.field_manager = value.into_owned(),
                "force" => options.force = flag,
                "fieldValidation" => options.validation = validation(&value)?,
                "propagationPolicy" => options.propagation = Some(value.into_owned()),
                "gracePeriodSeconds" => options.grace_period = value.parse().ok(),
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
