//! Compares the committed schema of a policy's settings with the code. The tests of other policies include this file,
//! too. The policy `agent` has its own test of the schema, because `policy new --from agent` copies that test into
//! projects.

/// Asserts that the committed schema equals the schema that the code generates. `WRITE_SCHEMA=1` writes the schema.
pub(crate) fn assert_schema(text: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/settings.schema.json");
    if std::env::var_os("WRITE_SCHEMA").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let package = env!("CARGO_PKG_NAME");
    let command = format!("WRITE_SCHEMA=1 cargo test -p {package} --features schema --test settings");
    assert!(std::fs::read_to_string(path).unwrap() == text, "settings.schema.json is stale: run {command}");
}
