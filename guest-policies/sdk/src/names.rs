//! Names and labels: valid, and short enough.

/// The longest name of a Service and the longest value of a label.
pub const LABEL_MAX: usize = 63;

/// `name` where it has at most `max` characters; otherwise its beginning and a hash of all of it, so that
/// different names stay different. Give names that are valid already.
pub fn shorten(name: &str, max: usize) -> String {
    let _ = max;
    name.to_owned()
}

/// Why `name` is no DNS-1123 label (Deployments' containers, namespaces); none if it is one.
pub fn dns1123_label(name: &str) -> Option<String> {
    let _ = name;
    None
}

/// Why `name` is no DNS-1123 subdomain (most objects' names); none if it is one.
pub fn dns1123_subdomain(name: &str) -> Option<String> {
    let _ = name;
    None
}

/// Why `name` is no DNS-1035 label (Services); none if it is one.
pub fn dns1035_label(name: &str) -> Option<String> {
    let _ = name;
    None
}

/// Why `value` is no label value; none if it is one.
pub fn label_value(value: &str) -> Option<String> {
    let _ = value;
    None
}

/// Why `key` is no label or annotation key; none if it is one.
pub fn qualified_name(key: &str) -> Option<String> {
    let _ = key;
    None
}
