//! Checks the expressions of the chart's alerts and dashboard. The metrics in an expression must exist with these
//! labels and values. Its `by` clauses must contain all labels that the alert or the panel shows.
//!
//! These tests treat expressions as text. `tests/chart` checks with `promtool` when an alert fires, if `promtool` is
//! installed.

use std::{fs, path::Path};

use kaos_policy::failure::Failure;
use serde_json::Value;

use super::*;

/// Labels that the scraper adds to every sample, and the label of a bucket.
const GIVEN: [&str; 3] = ["namespace", "instance", "le"];

/// A `PromQL` expression of an alert or a panel.
struct Expression {
    of: String,
    text: String,
    /// The labels that the alert or the panel shows.
    shown: Vec<String>,
    /// The panel's minimum step.
    step: Value,
}

/// A metric in an expression.
struct Selector<'a> {
    row: &'static table::MetricRow,
    /// The text of the expression before the metric.
    before: &'a str,
    /// The label matchers of the metric: label, operator and value.
    matchers: Vec<(&'a str, &'a str, &'a str)>,
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads a YAML file of the chart.
fn chart(path: &str) -> Value {
    serde_saphyr::from_str(&read(&format!("deploy/helm/kaos-operator/{path}"))).unwrap()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items<'a>(of: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    of[field].as_array().into_iter().flatten()
}

/// Returns the words inside `{{ }}`.
fn filled_in(text: &str) -> Vec<&str> {
    let holes = text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
    holes.flat_map(str::split_whitespace).collect()
}

fn alerts() -> Vec<Expression> {
    let file = chart("files/monitoring/alerts.yaml");
    let alert = |rule: &Value| {
        let told = rule["annotations"].as_object().unwrap().values().filter_map(Value::as_str);
        let labels = told.flat_map(filled_in).filter_map(|word| word.strip_prefix("$labels."));
        Expression {
            of: string(&rule["alert"]),
            text: string(&rule["expr"]),
            shown: labels.map(str::to_owned).collect(),
            step: Value::Null,
        }
    };
    items(&file, "groups").flat_map(|group| items(group, "rules")).map(alert).collect()
}

fn panels() -> Vec<Expression> {
    let board = read("deploy/helm/kaos-operator/files/monitoring/dashboard.json");
    let board: Value = serde_json::from_str(&board).unwrap();
    let mut panels = Vec::new();
    for panel in items(&board, "panels") {
        for target in items(panel, "targets") {
            let legend = target["legendFormat"].as_str().unwrap_or_default();
            panels.push(Expression {
                of: string(&panel["title"]),
                text: string(&target["expr"]),
                shown: filled_in(legend).into_iter().map(str::to_owned).collect(),
                step: target["interval"].clone(),
            });
        }
    }
    panels
}

fn all() -> Vec<Expression> {
    let all: Vec<Expression> = alerts().into_iter().chain(panels()).collect();
    assert!(all.len() > 30, "{} expressions", all.len());
    all
}

impl Expression {
    fn selectors(&self) -> Vec<Selector<'_>> {
        let prefix = format!("{}_", table::PREFIX);
        let selector = |(at, _): (usize, &str)| {
            let (before, rest) = self.text.split_at(at);
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(rest.len());
            let (name, rest) = rest.split_at(end);
            let row = table::ROWS.iter().find(|row| is_sample(row, name));
            let row = row.unwrap_or_else(|| panic!("{}: there is no metric {name}", self.of));
            let inside = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or("", |(inside, _)| inside);
            let matchers = inside.split(',').filter(|text| !text.is_empty()).map(matcher).collect();
            Selector { row, before, matchers }
        };
        let found: Vec<Selector<'_>> = self.text.match_indices(&prefix).map(selector).collect();
        assert!(!found.is_empty(), "{} selects nothing", self.of);
        found
    }

    /// Returns the label lists of `by` clauses, in the order of the text. The first list has the labels of the result.
    fn groupings(&self) -> Vec<Vec<&str>> {
        let clauses = self.text.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
        clauses.map(|clause| clause.split(',').map(str::trim).collect()).collect()
    }
}

/// Returns whether samples of a metric have this name.
fn is_sample(row: &table::MetricRow, name: &str) -> bool {
    let endings: &[&str] =
        if row.kind == table::MetricKind::Histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
    endings.iter().any(|ending| name == format!("{}{ending}", row.full_name()))
}

/// Splits `label=~"value"` into three parts.
fn matcher(text: &str) -> (&str, &str, &str) {
    let (head, value) = text.split_once('"').unwrap();
    let label = head.trim_end_matches(['=', '!', '~']);
    (label.trim(), &head[label.len()..], value.trim_end_matches('"'))
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).into()
}

/// Returns the possible values of a metric's label. Returns `None` if any value is possible.
fn values(row: &table::MetricRow, label: &str) -> Option<Vec<String>> {
    Some(match (row.name, label) {
        ("passes", "result") => words(PassResult::ALL.map(PassResult::label)),
        ("objects", "ready") => words(Readiness::ALL.map(Readiness::label)),
        ("objects_unserved", "reason") => words(Unserved::ALL.map(Unserved::label)),
        ("watch_state", "state") => words(WatchState::ALL.map(WatchState::label)),
        ("policy_failures", "reason") => words(Failure::CATEGORIES),
        ("policy_revisions", "state") => words(RevisionState::ALL.map(RevisionState::name)),
        ("policy_revisions", "current") | ("rollout_objects", "moved") | ("policy_answers", "remembered") => {
            words(["true", "false"])
        }
        ("api_calls", "verb") => {
            words(["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"])
        }
        ("api_calls", "code") => {
            let mut codes = words(["timeout", "unreachable", "fenced", "cancelled"]);
            codes.extend((200..600).map(|code: u16| code.to_string()));
            codes
        }
        _ => return None,
    })
}

/// Returns whether a value fits the pattern of a matcher. Supports only patterns of letters and dots.
fn fits(named: &str, value: &str) -> bool {
    named.len() == value.len() && named.chars().zip(value.chars()).all(|(named, is)| named == '.' || named == is)
}

#[test]
fn each_matched_label_exists_in_the_metric_and_can_have_the_value() {
    for expression in all() {
        let of = &expression.of;
        for Selector { row, matchers, .. } in expression.selectors() {
            for (label, operator, value) in matchers {
                assert!(row.labels.contains(&label), "{of}: {} has no label {label}", row.name);
                let Some(possible) = values(row, label) else {
                    assert_eq!(label, "resource", "{of}: what can {label} of {} be?", row.name);
                    continue;
                };
                let alternatives: Vec<&str> =
                    if operator.ends_with('~') { value.split('|').collect() } else { vec![value] };
                for named in alternatives {
                    let is_possible = possible.iter().any(|possible| fits(named, possible));
                    assert!(is_possible, "{of}: {label} of {} is never {named}", row.name);
                }
            }
        }
    }
}

#[test]
fn each_label_in_a_sum_exists_and_shown_labels_remain() {
    for expression in all() {
        let (selectors, groupings) = (expression.selectors(), expression.groupings());
        for label in groupings.iter().flatten() {
            let is_known = GIVEN.contains(label) || selectors.iter().all(|it| it.row.labels.contains(label));
            assert!(is_known, "{}: a selected metric has no label {label}", expression.of);
        }
        for label in &expression.shown {
            let is_left = groupings.first().is_some_and(|labels| labels.contains(&label.as_str()));
            assert!(is_left, "{} shows {label}, which is summed up", expression.of);
        }
    }
}

#[test]
fn pods_that_are_scraped_twice_count_once() {
    for expression in all() {
        for Selector { row, before, .. } in expression.selectors() {
            // If Prometheus scrapes a pod twice, a division of two sums stays correct, and so does a quantile of a
            // histogram.
            let is_share = expression.text.contains(") / sum by") || row.kind == table::MetricKind::Histogram;
            let is_largest = before.rfind(" by (").is_some_and(|by| before[..by].ends_with("max"));
            let is_one = before.ends_with("max(") || before.ends_with("absent(");
            assert!(is_share || is_largest || is_one, "{}: {} adds up", expression.of, row.name);
        }
    }
}

#[test]
fn each_rate_spans_at_least_four_scrapes() {
    let scraped = string(&chart("values.yaml")["metrics"]["serviceMonitor"]["interval"]);
    let time = |text: &str| -> Duration { text.parse::<kube::core::Duration>().unwrap().into() };
    for expression in all() {
        for window in expression.text.split('[').skip(1).filter_map(|rest| rest.split(']').next()) {
            if window == "$__rate_interval" {
                // The variable `$__rate_interval` is at least four times the panel's step. Without its own step, the
                // panel would use the step of the data source, which may be smaller than the scrape interval.
                assert_eq!(expression.step, scraped, "{}", expression.of);
            } else {
                assert!(time(window) >= time(&scraped) * 4, "{}: {window}", expression.of);
            }
        }
    }
}

#[test]
fn the_guide_has_a_line_for_every_alert() {
    let guide = read("docs/guide/operate.md");
    for alert in alerts() {
        assert!(guide.contains(&format!("`{}`", alert.of)), "docs/guide/operate.md has nothing on {}", alert.of);
    }
}
