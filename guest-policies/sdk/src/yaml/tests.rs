use super::{Problem, parse, parse_texts};
use serde_json::{Value, json};
use std::fmt::Write;

fn problem(text: &str) -> Problem {
    parse(text).unwrap_err().problem
}

#[test]
fn a_registry_of_runtimes_is_read() {
    let text = "runtimes:\n  slack:\n    image: \"zencoderai/slack-mcp:latest\"\n    args: [--port, '8000', 8000]\n    \
                script: |\n      a: b\n      c\n    on: yes\n    off: false\n    none:\n";
    assert_eq!(
        parse(text).unwrap(),
        json!({"runtimes": {"slack": {
            "image": "zencoderai/slack-mcp:latest", "args": ["--port", "8000", 8000], "script": "a: b\nc\n",
            "on": "yes", "off": false, "none": null
        }}})
    );
    assert_eq!(parse("").unwrap(), Value::Null);
    assert_eq!(parse("# nothing\n").unwrap(), Value::Null);
}

#[test]
fn a_document_of_texts_has_no_numbers() {
    let text = "args: [--port, 8000, 1.10, 0x1F, True, no, '5', ~, !!str null]\nimage: 5\nnone:\nempty: ''\n";
    let args = json!(["--port", "8000", "1.10", "0x1F", "True", "no", "5", null, "null"]);
    assert_eq!(parse_texts(text).unwrap(), json!({"args": args, "image": "5", "none": null, "empty": ""}));
    assert_eq!(parse_texts("").unwrap(), Value::Null);
}

#[test]
fn scalars_follow_the_core_schema() {
    let text = "[1, -2, +3, 0x1F, 0o17, 1.5, .5, 1e3, .inf, 1_000, 0b1, 12:30, ~, Null, TRUE, '1', !!str 1, 1.2.3, -, 18446744073709551615]";
    let text = text.replace("-, 184", "'-', 184");
    let wanted = json!([
        1,
        -2,
        3,
        31,
        15,
        1.5,
        0.5,
        1000.0,
        ".inf",
        "1_000",
        "0b1",
        "12:30",
        null,
        null,
        true,
        "1",
        "1",
        "1.2.3",
        "-",
        18_446_744_073_709_551_615_u64
    ]);
    assert_eq!(parse(&text).unwrap(), wanted);
}

#[test]
fn an_anchor_and_a_tag_may_have_a_line_each() {
    let wanted = json!({"z": null, "w": null});
    assert_eq!(parse("&a \n!!map \n  z: \n  w:").unwrap(), wanted);
    assert_eq!(parse("&a\n!!map\nz:\nw:").unwrap(), wanted);
    assert_eq!(parse("k: &a\n  !!map\n  &b z:\n  w: *a").unwrap_err().problem, Problem::UnknownAlias);
}

#[test]
fn anchors_and_merge_keys_work() {
    let text = "base: &b {a: 1, b: 2}\nx: {<<: *b, b: 3}\ny: {<<: [*b, {c: 4}]}\nz: *b\n";
    let wanted =
        json!({"base": {"a": 1, "b": 2}, "x": {"a": 1, "b": 3}, "y": {"a": 1, "b": 2, "c": 4}, "z": {"a": 1, "b": 2}});
    assert_eq!(parse(text).unwrap(), wanted);
    assert_eq!(problem("<<: 5"), Problem::BadMerge);
}

#[test]
fn nested_aliases_do_not_expand_without_limit() {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(9);
        writeln!(text, "a{level}: &a{level} [{below}]").unwrap();
    }
    assert_eq!(problem(&text), Problem::TooManyAliases);
}

#[test]
fn depth_is_bounded() {
    let list = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(problem(&list(65)), Problem::TooDeep);
    assert!(parse(&list(64)).is_ok() && parse(&list(100_000)).is_err() && parse(&"{a: ".repeat(100)).is_err());
    assert!(parse(&"- ".repeat(60)).is_ok());
}

#[test]
fn ambiguous_yaml_is_refused_with_its_place() {
    assert_eq!(problem("a: 1\n---\nb: 2\n"), Problem::SecondDocument);
    assert_eq!(problem("a: 1\na: 2\n"), Problem::DuplicateKey("a".to_owned()));
    assert_eq!(problem("[a]: 1\n"), Problem::ComplexKey);
    let error = parse("a: 1\nb: [\n").unwrap_err();
    assert!(matches!(error.problem, Problem::Syntax(_)), "{error}");
    let error = parse("a: 1\nb: 2\na: 3\n").unwrap_err();
    assert_eq!((error.line, error.column), (3, 1));
}

#[test]
fn fractions_are_read_in_every_spelling_of_yaml() {
    for (text, wanted) in [
        ("1.", 1.0),
        ("-.5", -0.5),
        ("+1.5", 1.5),
        ("007.25", 7.25),
        ("1.e2", 100.0),
        ("2E-2", 0.02),
        ("18446744073709551616", 18_446_744_073_709_551_616.0),
    ] {
        assert_eq!(parse(text).unwrap(), json!(wanted), "{text}");
    }
    for text in [".", "1e", "1e999", "--5", "1-2", "1.2e3.4", "1e+", ".e1"] {
        assert_eq!(parse(text).unwrap(), json!(text));
    }
}
