//! The findings as a JUnit report: one suite with a test case for each check.

use kaos_policy::printable::printable_lines;

use super::{repeat::Repeat, text::counterexample};
use crate::conform::{CheckOutcome, CheckResult, Findings};

/// Formats the findings.
pub(super) fn junit(findings: &Findings, repeat: &Repeat<'_>) -> anyhow::Result<String> {
    let Findings { policy, seed, results, .. } = findings;
    let suite = policy.as_ref().map_or_else(|| "(unknown)".to_owned(), |id| format!("{} {}", id.name, id.version));
    let count = |outcome| results.iter().filter(|result| result.outcome == outcome).count();
    let (tests, failures, skipped) = (results.len(), count(CheckOutcome::Failed), count(CheckOutcome::Skipped));
    let suite = attribute(&format!("policy conform {suite}"));
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
    let mut report = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n");
    report += &format!("  <testsuite name=\"{suite}\" {counts}>\n");
    report += &format!("    <properties><property name=\"seed\" value=\"{seed}\"/></properties>\n");
    for result in results {
        let CheckResult { property, outcome, found, .. } = result;
        report += &format!("    <testcase classname=\"{suite}\" name=\"{}\">", property.name());
        match outcome {
            CheckOutcome::Passed => report += &format!("<system-out>{}</system-out>", escaped(found)),
            CheckOutcome::Skipped => report += &format!("<skipped message=\"{}\"/>", attribute(found)),
            CheckOutcome::Failed => {
                let detail = format!("{found}\n{}", counterexample(result, repeat)?);
                report += &format!("<failure message=\"{}\">{}</failure>", attribute(found), escaped(&detail));
            }
        }
        report += "</testcase>\n";
    }
    report += "  </testsuite>\n</testsuites>\n";
    Ok(report)
}

/// Escapes a text for XML. XML cannot contain control characters, so this function replaces them by visible escapes.
fn escaped(text: &str) -> String {
    let is_not_xml = |c: char| matches!(c, '\u{fffe}' | '\u{ffff}') || (c.is_control() && c != '\n');
    let mut escaped = String::with_capacity(text.len());
    for c in printable_lines(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            c if is_not_xml(c) => escaped += &format!("\\u{{{:x}}}", u32::from(c)),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Escapes a text for an attribute. A parser turns a plain line break in an attribute into a space, so this function
/// escapes line breaks too.
fn attribute(text: &str) -> String {
    escaped(text).replace('\n', "&#10;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_break_the_report() {
        assert_eq!(escaped("a<b>&\"c\"\n]]>"), "a&lt;b&gt;&amp;&quot;c&quot;\n]]&gt;");
        assert_eq!(escaped("\u{1b}[2J\u{ffff}\u{0}"), "\\u{1b}[2J\\u{ffff}\\u{0}");
        assert_eq!(attribute("a\nb"), "a&#10;b");
    }
}
