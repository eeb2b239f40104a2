//! Tests masking with secret values in every form in which users write them.

use fastrand::Rng;
use serde_json::{Value, json};

use super::*;
use crate::yaml;

#[test]
fn a_secret_value_is_masked_wherever_it_appears() {
    let secret = json!({"kind": "Secret", "data": {"a": "c2VjcmV0LW9uZQ=="}, "stringData": {"b": "secret-two"}});
    let config = json!({"kind": "ConfigMap", "data": {"api-key": "secret-three", "c.yaml": "password: secret-four\n"}});
    let agent = json!({"spec": {"env": [{"name": "API_TOKEN", "value": "secret-five"}, {"name": "A", "value": "plain"}],
        "ref": {"name": "some-secret", "key": "api-token"}, "secretName": "my-secret", "isSecret": "false"}});
    let nested = json!({"apiKey": {"value": "secret-six", "valueFrom": {"secretKeyRef": {"name": "other-secret"}}},
        "tokens": ["secret-seven", {"of": 8_800_800}]});
    let masks = Masks::of([&secret, &config, &agent, &nested]);
    for hidden in [
        "secret-one",
        "c2VjcmV0LW9uZQ==",
        "secret-two",
        "secret-three",
        "secret-four",
        "secret-five",
        "secret-six",
        "secret-seven",
        "8800800",
    ] {
        let told = masks.value(&json!([format!("url?{hidden}&x")])).to_string();
        assert!(told.starts_with(&format!("[\"url?{MASK}")) && told.ends_with("&x\"]"), "{hidden}: {told}");
    }
    for shown in ["plain", "api-token", "my-secret", "some-secret", "other-secret", "false"] {
        assert_eq!(masks.text(shown), shown);
    }
}

#[test]
fn values_of_secret_names_are_hidden_line_by_line() {
    let told =
        "model: gpt\n  api_key: s3cret\n--token=abc\n\"password\": \"x\"\nurl: http://a:1\nsecretName: b\nkey:\n";
    let shown = "model: gpt\n  api_key: ********\n--token=********\n\"password\": \"********\"\nurl: http://a:1\nsecretName: b\nkey:\n";
    assert_eq!(text(told), shown);
    assert_eq!(text(shown), shown);
}

#[test]
fn json_and_yaml_in_texts_stay_valid() {
    let json = json!({"user": "a", "auth": {"credentials": {"of": ["s3cret"]}}, "pin": 12}).to_string();
    let shown: Value = serde_json::from_str(&text(&json)).unwrap();
    assert_eq!(shown, json!({"user": "a", "auth": {"credentials": {"of": [MASK]}}, "pin": MASK}));
    let yaml =
        "# old password: s3cret\nuser: a\ntokens:\n- s3cret\n- |\n  s3cret\n  s3cret\n---\nkey: b\napi_key: s3cret\n";
    let shown = text(yaml);
    assert!(!shown.contains("s3cret"), "{shown}");
    let last = shown.rsplit("---\n").next().unwrap();
    let last: Value = serde_saphyr::from_str(last).unwrap();
    assert_eq!(last, json!({"key": "b", "api_key": MASK}));
}

#[test]
fn short_values_and_numbers_are_masked_where_they_are_secret() {
    let object = json!({"password": 1234, "tokens": 3, "code": 1234, "tokenId": 77_889_900, "other": 77_889_900,
        "volume": {"secret": {"secretName": "s", "defaultMode": 420}}, "env": [{"name": "DOOR_PIN", "value": "47x1"}],
        "url": "http://x/47x1?y", "port": "47x11"});
    let masks = Masks::of([&object]);
    let mut masked = object.clone();
    let mut paths = Vec::new();
    masks.mask(&mut masked, "object", &mut |path| paths.push(path.to_owned()));
    assert_eq!(
        masked,
        json!({"password": 0, "tokens": 3, "code": 1234, "tokenId": 0, "other": 0,
        "volume": {"secret": {"secretName": "s", "defaultMode": 420}}, "env": [{"name": "DOOR_PIN", "value": MASK}],
        "url": format!("http://x/{MASK}?y"), "port": "47x11"})
    );
    paths.sort();
    assert_eq!(paths, ["object.env[0].value", "object.other", "object.password", "object.tokenId", "object.url"]);
    assert_eq!(masks.value(&object)["other"], MASK);
}

#[test]
fn the_argument_after_a_secret_flag_is_secret() {
    let args =
        json!({"args": ["--token", "canary-1", "--verbose", "x"], "command": ["sh", "-c", "run --token canary-1"]});
    let shown =
        json!({"args": ["--token", MASK, "--verbose", "x"], "command": ["sh", "-c", format!("run --token {MASK}")]});
    assert_eq!(Masks::of([&args]).value(&args), shown);
    assert_eq!(Masks::of([&args]).text("it was canary-1"), format!("it was {MASK}"));
}

#[test]
fn a_key_of_a_map_is_masked_if_it_shows_a_secret() {
    let object = json!({"hosts": {"https://user:canary-1@host": 1, "password": "password", "x.canary-1": 2}});
    let shown = Masks::of([&object]).value(&object).to_string();
    assert!(!shown.contains("canary") && shown.contains("\"password\":\"********\""), "{shown}");
}

/// Returns a random secret value.
pub(crate) fn canary(rng: &mut Rng) -> String {
    let letters: Vec<char> = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789".chars().collect();
    let special: Vec<char> = "-_.!%+/=@:#".chars().collect();
    let mut pick = |from: &[char]| from[rng.usize(..from.len())];
    let mut canary: String = (0..4).map(|_| pick(&letters)).collect();
    for _ in 0..rng.usize(2..16) {
        canary.push(if rng.u8(..6) == 0 {
            special[rng.usize(..special.len())]
        } else {
            letters[rng.usize(..letters.len())]
        });
    }
    canary + &rng.u8(10..100).to_string()
}

/// Returns the forms in which a text can contain a secret value, each with its name.
pub(crate) fn shapes(canary: &str) -> Vec<(&'static str, String)> {
    let json =
        json!({"user": "a", "nested": {"API_TOKEN": canary}, "list": [{"name": "DB_PASSWORD", "value": canary}]});
    let yaml = yaml::text(&json).unwrap();
    let base64 = |text: &str| serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap();
    let base64 = |text: &str| base64(text).as_str().unwrap().to_owned();
    vec![
        ("name=value", format!("host=db password={canary} user=x")),
        ("name: value", format!("connecting, api_key: {canary}")),
        ("line", format!("a: 1\n# token = {canary}\nb: 2")),
        ("flag", format!("run --api-key={canary} --verbose")),
        ("flag and argument", format!("run --api-key {canary} --verbose")),
        ("JSON", json.to_string()),
        ("JSON of several lines", format!("{json:#}")),
        ("YAML", yaml.clone()),
        ("YAML in JSON", json!({"config": yaml}).to_string()),
        ("JSON in YAML", yaml::text(&json!({"x": 1, "config": json.to_string()})).unwrap()),
        ("broken JSON", format!("{} and more", json!({"password": canary}))),
        ("template", format!("{{{{ if x }}}}\ntokens:\n  - {canary}\n{{{{ end }}}}\n")),
        ("URL", format!("see postgres://user:{}@db/x", canary.replace(['/', '#', '@', ':', '%'], "z"))),
        ("header", format!("Authorization: Bearer {canary}")),
        ("base64 of JSON", base64(&json.to_string())),
        ("base64 of a line", format!("config {}", base64(&format!("password={canary}")))),
    ]
}

#[test]
fn every_shape_of_a_secret_value_is_masked_without_other_knowledge() {
    for seed in 0..300 {
        let canary = canary(&mut Rng::with_seed(seed));
        for (shape, with_canary) in shapes(&canary) {
            let shown = text(&with_canary);
            assert!(!shows(&shown, &canary), "{seed}: {shape}: {with_canary}\n{shown}");
            assert_eq!(text(&shown), shown, "{seed}: {shape}: masks change nothing in a masked text");
        }
    }
}

#[test]
fn a_value_with_a_secret_name_is_masked_in_every_other_place() {
    for seed in 0..300 {
        let canary = canary(&mut Rng::with_seed(seed));
        let base64 = |text: &str| serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap();
        let object = json!({
            "env": [{"name": "API_TOKEN", "value": canary}],
            "copy": canary, "within": format!("<{canary}>"), "base64": base64(&canary),
            "login": base64(&format!("user:{canary}")),
            "json": json!({"x": format!("it is {canary}")}).to_string(),
            "data": {"plain.yaml": format!("x: 1\ny: {}\n", json!(canary))},
        });
        let shown = Masks::of([&object]).value(&object).to_string();
        assert!(!shows(&shown, &canary), "{seed}: {canary}: {shown}");
    }
}

/// Returns whether a text shows a secret value, also in base64 or as a part of a URL.
pub(crate) fn shows(text: &str, canary: &str) -> bool {
    let encoded = encoded::forms(canary);
    text.contains(canary)
        || encoded.iter().any(|form| text.contains(form))
        || encoded::parts(text).iter().any(|(_, decoded)| decoded.contains(canary))
}

#[test]
fn no_text_makes_the_masks_panic() {
    let pieces = [
        "token",
        "password",
        "=",
        ":",
        ": ",
        " ",
        "\n",
        "  ",
        "- ",
        "\"",
        "'",
        "\\",
        "\\\"",
        "`",
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        "://",
        "@",
        "/",
        "?",
        "&",
        "--",
        "ü",
        "😀",
        "|",
        "secretName",
        "Bearer ",
        "Basic ",
        "dG9rZW46IHg=",
        "-----BEGIN PRIVATE KEY-----",
        "-----END ",
        "---",
        "\r\n",
        "\t",
        "a1b2c",
        "1234",
        "$(X)",
        ",",
        "#",
        MASK,
    ];
    let mut rng = Rng::with_seed(7);
    for _ in 0..4000 {
        let told: String = (0..rng.usize(1..24)).map(|_| pieces[rng.usize(..pieces.len())]).collect();
        let object = json!({"token": "a1b2c", "pin": "123", "text": told, &told: 1});
        let masks = Masks::of([&object]);
        assert!(!masks.text(&told).contains("a1b2c"), "{told:?}");
        drop((text(&told), masks.value(&object)));
    }
}
