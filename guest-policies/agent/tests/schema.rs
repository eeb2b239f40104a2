//! Checks that `settings.schema.json` matches the settings type.

use kaos_agent::Settings;

const FILE: &str = include_str!("../settings.schema.json");

#[test]
fn the_schema_file_matches_the_settings_type() {
    let wanted = Settings::schema_text();
    if std::env::var_os("WRITE_SCHEMA").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/settings.schema.json"), &wanted).unwrap();
        return;
    }
    assert!(
        FILE == wanted,
        "settings.schema.json is stale; to write it again, run: WRITE_SCHEMA=1 cargo test -p kaos-agent --test schema"
    );
}
