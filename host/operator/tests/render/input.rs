//! Tests the input of `render`: files, directories, and content that is not valid.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use super::{Folder, LLM, READY, render, run, writer};

const LLM_TWICE: &str =
    r#"{"apiVersion":"kaos.tools/v1alpha1","kind":"ModelAPI","metadata":{"name":"llm"},"spec":{},"spec":{}}"#;

#[test]
fn files_beyond_the_size_limit_are_refused() {
    let endless = "/dev/zero";
    let policy = ["policy", "check", endless];
    let settings = ["render", "-f", "-", "--settings", endless];
    let component = ["render", "-f", "-", "--policy", endless];
    for arguments in [&["render", "-f", endless][..], &policy, &settings, &component] {
        let ran = run(arguments, LLM);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.starts_with("error: /dev/zero: is larger than the limit of "),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
}

#[test]
fn examples_render_as_one_input() {
    let examples = format!("{}/../../docs/examples", env!("CARGO_MANIFEST_DIR"));
    let ran = run(["render", "-f", &examples, "-o", "json"], "");
    assert!(ran.code == 0 || ran.code == 1, "{}", ran.stderr);
    assert!(ran.json().as_array().is_some_and(|list| list.len() > 4), "{}", ran.stdout);
}

#[test]
fn directories_and_several_files_are_one_input() {
    let folder = Folder::new("directory");
    folder.write("objects/1.yaml", LLM);
    folder.write("objects/notes.txt", "not: [an object");
    let list = format!(
        r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#,
        r#"{"apiVersion":"kaos.tools/v1alpha1","kind":"Agent","metadata":{"name":"a"},"spec":{"modelAPI":"llm","model":"m"}}"#
    );
    folder.write("objects/2.json", list);
    folder.write("objects/below/3.yaml", writer("below"));
    let more = folder.write("more.yml", writer("more"));
    let objects = format!("{}/objects", folder.path());
    let count =
        |arguments: &[&str]| run(["render", "-o", "json"].iter().chain(arguments), "").json().as_array().map(Vec::len);
    assert_eq!(count(&["-f", &objects, "-f", &more]), Some(3));
    assert_eq!(count(&["-R", "-f", &objects, "-f", &more]), Some(4));
}

#[test]
fn every_unusable_file_of_a_directory_is_reported() {
    let folder = Folder::new("unreadable");
    let gone = folder.write("objects/1.yaml", "");
    std::fs::remove_file(&gone).expect("the file goes");
    std::os::unix::fs::symlink("/no/such/file", &gone).expect("a link");
    folder.write("objects/2.yaml", b"\xff");
    folder.write("objects/3.yaml", "kind: [\n");
    folder.write("objects/4.json", LLM_TWICE);
    folder.write("objects/5.yaml", LLM.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    let ran = run(["render", "-f", &format!("{}/objects", folder.path())], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    for told in [
        "1.yaml: No such file",
        "2.yaml: is no text in UTF-8",
        "3.yaml: document 1: is not YAML or JSON: unclosed bracket",
        "4.json: document 1: the field spec occurs twice at line 1",
        "5.yaml: is text in UTF-16: save it as UTF-8",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
}

#[test]
fn pipe_is_read_with_a_note_while_there_is_no_writer() {
    let folder = Folder::new("pipes");
    let pipe = folder.write("pipe", "");
    std::fs::remove_file(&pipe).expect("the file goes");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success()));
    let mut waiting = Command::new(env!("CARGO_BIN_EXE_kaos-operator"))
        .args(["render", "-f", &pipe, "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut told = String::new();
    BufReader::new(waiting.stderr.take().expect("a pipe")).read_line(&mut told).expect("a line");
    assert_eq!(told, format!("note: {pipe}: waiting for another process to write to this pipe and to close it\n"));
    std::fs::write(&pipe, format!("{LLM}{READY}")).expect("somebody writes");
    let ran = waiting.wait_with_output().expect("it ends");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("modelapi-llm"), "{ran:?}");
}

#[test]
fn misspelt_variable_of_the_operator_config_is_reported() {
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kaos-operator-config, namespace: kaos-system}\n\
                  data: {DEFAULT_AGENT_IMG: 'agent:1', DEFAULT_MCP_SERVER_IMAGE: 'mcp:1', GATEWAY_HOST: a}\n";
    let ran = render(&format!("{LLM}{READY}---\n{config}"), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = "ConfigMap kaos-system/kaos-operator-config: data.DEFAULT_AGENT_IMG: ignored, since no policy has a \
                setting for this variable: did you mean DEFAULT_AGENT_IMAGE?";
    assert!(ran.stderr.contains(told) && ran.stderr.matches("ignored").count() == 1, "{}", ran.stderr);
}

#[test]
fn unusable_input_ends_with_2_and_names_the_place() {
    let folder = Folder::new("unusable");
    let empty = folder.write("empty.yaml", "# nothing\n---\n");
    let broken = folder.write("broken.yaml", format!("{LLM}---\nkind: [\n"));
    let twice = folder.write("twice.yaml", format!("{LLM}---\n{LLM}"));
    let nameless = folder.write("nameless.yaml", "apiVersion: v1\nkind: ConfigMap\n");
    let wrong = folder.write("wrong.yaml", LLM.replace("['*']", "many"));
    let elsewhere = folder.write("elsewhere.yaml", LLM.replace("{name: llm}", "{name: llm, namespace: 'Not a name'}"));
    let other = folder.write("other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    std::fs::create_dir(format!("{}/nothing", folder.path())).expect("a folder");
    for (file, message) in [
        (empty, "the input has no objects"),
        (broken, "document 2: is not YAML or JSON: "),
        (elsewhere, "document 1: metadata.namespace: "),
        (twice, "document 2: ModelAPI default/llm was already given in "),
        (nameless, "document 1: metadata.name: missing"),
        (wrong, "document 1: ModelAPI default/llm: spec.proxyConfig.models: "),
        (other, "nothing to render: no object is of a kind that a policy claims (kaos.tools/v1alpha1 AccessGrant, "),
        (format!("{}/none.yaml", folder.path()), "none.yaml: No such file"),
        (format!("{}/nothing", folder.path()), "no .yaml, .yml or .json file"),
    ] {
        let ran = run(["render", "-f", &file], "");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{file}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(message), "{file}: {}", ran.stderr);
    }
    assert_eq!(run(["render", "-f", "-", "-f", "-"], LLM).code, 2);
    assert_eq!(run(["render"], "").code, 2);
}

#[test]
fn unknown_fields_are_dropped_with_a_warning() {
    let ran = render(&format!("{}{READY}", LLM.replace("mode:", "moed: good\n  mode:")), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains(
            "warning: -: document 1: ModelAPI default/llm: spec.moed: unknown field, ignored: did you mean mode?"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn unknown_field_below_an_open_field_is_dropped_with_a_warning() {
    let config = "configYaml: {fromSecretKeyRef: {name: s, key: k, optinal: true}}";
    let ran = render(&format!("{}{READY}", LLM.replace("models:", &format!("{config}\n    models:"))), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = "spec.proxyConfig.configYaml.fromSecretKeyRef.optinal: unknown field, ignored: did you mean optional?";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn unknown_kind_of_a_known_group_gives_a_warning() {
    let stranger = LLM.replace("kind: ModelAPI", "kind: ModelApi").replace("name: llm", "name: other");
    let ran = render(&format!("{LLM}{READY}---\n{stranger}"), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("no such kind: did you mean ModelAPI?"), "{}", ran.stderr);
    assert_eq!(render(&stranger, &[]).code, 2);
}

#[test]
fn invalid_names_on_the_command_line_are_refused() {
    for arguments in [["-n", "Bad NS!"], ["--cluster-domain", "a b;$(x)"], ["--operator-namespace", "a b/.."]] {
        let ran = render(LLM, &arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}: {}", ran.stderr);
    }
}
