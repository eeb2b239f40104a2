//! Describes the regular expressions of Kubernetes' own rules in words, with an example. Most regular expressions in
//! schemas come from these rules.

/// Returns a noun for the texts that a pattern accepts, or `None` if this module does not know the pattern.
pub(super) fn noun(pattern: &str) -> Option<&'static str> {
    NOUNS.iter().find(|(of, _)| *of == pattern).map(|(_, noun)| *noun)
}

/// Returns the message for a text that matches the forbidden `pattern`, or `None` if this module does not know the
/// pattern.
pub(super) fn not(pattern: &str) -> Option<&'static str> {
    (pattern == r"^(.*\.)?kaos\.tools/")
        .then_some("must not begin with kaos.tools/, which is reserved for the operator")
}

const LABEL: &str = "a name of lower-case letters, digits and inner hyphens, such as my-name";
const SUBDOMAIN: &str = "a name of lower-case letters, digits, inner hyphens and dots, such as my-name.example";
const QUANTITY: &str = "a quantity, such as 500m or 1Gi";

const NOUNS: [(&str, &str); 15] = [
    (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", LABEL),
    (r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", LABEL),
    (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", SUBDOMAIN),
    (r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$", SUBDOMAIN),
    (
        r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$",
        "the value of a label: at most 63 letters, digits and inner hyphens, underscores and dots, such as my-value",
    ),
    (
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
        "the key of a label or annotation, such as app or example.com/app",
    ),
    (
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$",
        "a name with a domain, such as example.com/name",
    ),
    (
        r"^([0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$",
        "the name of a port: lower-case letters, digits and single inner hyphens, such as http",
    ),
    (
        r"^([-._a-zA-Z][-._a-zA-Z0-9]*)?$",
        "the name of a variable: letters, digits, hyphens, underscores and dots, no digit first, such as LOG_LEVEL",
    ),
    (
        r"^([-_a-zA-Z0-9]|\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$",
        "the name of a file or key: letters, digits, hyphens, underscores and dots, such as config.yaml",
    ),
    (r"^([0-9]+(h|m|s|ms)){1,4}$", "a time, such as 90s or 1h30m"),
    (r"^/", "a path that begins with /, such as /health"),
    (r"^/[^:]*$", "a path that begins with / and has no colon, such as /data"),
    (r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$", QUANTITY),
    (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        QUANTITY,
    ),
];
