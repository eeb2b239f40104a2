//! Splits a text into documents. The text is multi-document YAML, or one or several JSON values. Each item of a list
//! becomes a document.

use std::{mem, path::Path, sync::Arc};

use kaos_policy::{
    contract::Scopes,
    yaml::{is_syntax, told},
};
use serde_json::{Deserializer, Number, Value};

use super::{Document, DocumentOrigin, Identity, InputError, json::Unique};

/// Parses all documents of a text. Returns an error for each invalid document, in addition to the valid documents.
/// Treats all types as namespaced, except the built-in types that are cluster-scoped.
pub fn parse(file: &Arc<str>, text: &str, default_namespace: &str) -> (Vec<Document>, Vec<InputError>) {
    identified(objects(file, text), default_namespace, &Scopes::default())
}

/// An object without its identity yet, after its position in the input.
pub(super) type Unplaced = (DocumentOrigin, Value);

/// Returns the objects of a text, and an error for each invalid document.
pub(super) fn objects(file: &Arc<str>, text: &str) -> Vec<Result<Unplaced, InputError>> {
    let mut found = Vec::new();
    for (index, parsed) in values(file, text).into_iter().enumerate() {
        let origin = DocumentOrigin { file: Arc::clone(file), document: index + 1, item: None };
        match parsed {
            Ok(Value::Null) => {}
            Ok(value) => flatten(value, &origin, &mut found),
            Err(wrong) => found.push(Err(wrong.at(origin))),
        }
    }
    found
}

/// Reads the identity of each object. If an object needs a namespace and has none, sets the default namespace.
pub(super) fn identified(
    found: Vec<Result<Unplaced, InputError>>,
    default_namespace: &str,
    scopes: &Scopes,
) -> (Vec<Document>, Vec<InputError>) {
    let (mut documents, mut errors) = (Vec::new(), Vec::new());
    for object in found {
        match object.and_then(|object| identify(object, default_namespace, scopes)) {
            Ok(document) => documents.push(document),
            Err(error) => errors.push(error),
        }
    }
    (documents, errors)
}

fn identify((origin, mut object): Unplaced, namespace: &str, scopes: &Scopes) -> Result<Document, InputError> {
    match Identity::of(&mut object, namespace, scopes) {
        Ok(identity) => Ok(Document { origin, identity, object }),
        Err((path, message)) => Err(InputError::NoObject { origin, path, message }),
    }
}

/// The error of a parser.
pub(super) struct Wrong {
    message: String,
    /// `true` if the text is neither YAML nor JSON; `false` for other errors, such as a repeated field.
    is_syntax: bool,
}

impl Wrong {
    pub(super) fn at(self, origin: DocumentOrigin) -> InputError {
        let Self { message, is_syntax } = self;
        if is_syntax { InputError::Syntax { origin, message } } else { InputError::Unusable { origin, message } }
    }
}

/// Parses each document of a text. Returns a value or an error for each document.
pub(super) fn values(file: &str, text: &str) -> Vec<Result<Value, Wrong>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with(['{', '[']) {
        let values: Vec<_> = Deserializer::from_str(text).into_iter::<Unique>().collect();
        // Check that all values are valid JSON, because YAML in flow style may start like JSON.
        if Path::new(file).extension().is_some_and(|end| end == "json") || values.iter().all(Result::is_ok) {
            let read = |value: Result<Unique, serde_json::Error>| match value {
                Ok(Unique(value)) => Ok(whole(value)),
                // Only `Unique` creates data errors, for repeated fields. All other errors are syntax errors.
                Err(error) => Err(Wrong { message: error.to_string(), is_syntax: !error.is_data() }),
            };
            return values.into_iter().map(read).collect();
        }
    }
    split(text).into_iter().map(|(line, document)| yaml(document, line).map(whole)).collect()
}

/// Turns numbers such as `1.0` into integers, as the API server does when it stores an object.
fn whole(mut value: Value) -> Value {
    round(&mut value);
    value
}

fn round(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(integer) = as_integer(number) {
                *number = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        _ => {}
    }
}

fn as_integer(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    // Do not use a cast: a cast would change a number that is too large.
    format!("{float:.0}").parse().ok()
}

/// Splits a YAML text into documents, each with the number of lines before it. A line that starts with `---` always
/// separates documents, also inside a block scalar.
fn split(text: &str) -> Vec<(usize, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut start_line, mut offset) = (0, 0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let separates =
            line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']));
        if separates {
            // The text before the first separator is a document only if this text is not blank.
            if !documents.is_empty() || !is_blank(&text[start..offset]) {
                documents.push((start_line, &text[start..offset]));
            }
            (start, start_line) = (offset, number);
        }
        offset += line.len();
    }
    documents.push((start_line, &text[start..]));
    // Keep blank documents between separators, because the numbering of documents includes them.
    documents
}

fn is_blank(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#') || line.starts_with('%'))
}

fn yaml(document: &str, lines_before: usize) -> Result<Value, Wrong> {
    if is_blank(document.strip_prefix("---").unwrap_or(document)) {
        return Ok(Value::Null);
    }
    let wrong = |error| Wrong { message: told(&error, lines_before), is_syntax: is_syntax(&error) };
    serde_saphyr::from_str_with_options(document, options()).map_err(wrong)
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        // Parse in the same way as `kubectl`: `defaultMode: 0644` is octal, and `no` is false.
        legacy_octal_numbers: true,
        strict_booleans: false,
        with_snippet: false,
        emit_comments: false,
        // These limits are large enough for a list of ten thousand objects, and for CRDs with deeply nested schemas.
        budget: serde_saphyr::budget! {
            max_depth: 256,
            max_events: 20_000_000,
            max_nodes: 10_000_000,
        },
    }
}

fn flatten(mut value: Value, origin: &DocumentOrigin, found: &mut Vec<Result<Unplaced, InputError>>) {
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    if let (true, Some(items)) = (is_list, value.get_mut("items").and_then(Value::as_array_mut)) {
        for (index, item) in mem::take(items).into_iter().enumerate() {
            let origin = DocumentOrigin { item: Some(index), ..origin.clone() };
            flatten(item, &origin, found);
        }
        return;
    }
    // Only an object without a name can be a list: an ordinary kind may have the name `List` too, but its objects have
    // names.
    if is_list && value["metadata"]["name"].is_null() && (value["kind"] == "List" || !value["items"].is_null()) {
        let message = "must be a list of objects".to_owned();
        found.push(Err(InputError::NoObject { origin: origin.clone(), path: "items", message }));
        return;
    }
    found.push(Ok((origin.clone(), value)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KITE: &str = "apiVersion: example.org/v1\nkind: Kite\nmetadata: {name: NAME}\n";

    fn kite(name: &str) -> String {
        KITE.replace("NAME", name)
    }

    fn names(file: &str, text: &str) -> (Vec<String>, Vec<String>) {
        let (documents, errors) = parse(&file.into(), text, "default");
        (
            documents
                .iter()
                .map(|document| format!("{} {}", document.origin.document, document.identity.name))
                .collect(),
            errors.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn documents_are_numbered_in_the_order_of_the_file() {
        let text = format!("# head\n---\n{}---\n# nothing\n---\n{}", kite("red"), kite("blue"));
        assert_eq!(names("a.yaml", &text), (vec!["1 red".into(), "3 blue".into()], vec![]));
    }

    #[test]
    fn a_broken_document_is_reported_with_its_line_and_the_others_are_read() {
        let text = format!("{}---\nkind: [\n---\n{}", kite("red"), kite("blue"));
        let (good, errors) = names("a.yaml", &text);
        assert_eq!(good, ["1 red", "3 blue"]);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].starts_with("a.yaml: document 2: "), "{errors:?}");
        assert!(errors[0].contains("line 5") || errors[0].contains("line 6"), "{errors:?}");
    }

    #[test]
    fn lists_are_split_into_their_items_even_if_nested() {
        let text = r#"{"apiVersion":"v1","kind":"List","items":[
            {"apiVersion":"example.org/v1","kind":"KiteList","items":[{"apiVersion":"example.org/v1","kind":"Kite","metadata":{"name":"red"}}]},
            {"apiVersion":"example.org/v1","kind":"Kite","metadata":{}}]}"#;
        let (documents, errors) = parse(&"a.json".into(), text, "default");
        assert_eq!(documents[0].origin.to_string(), "a.json: document 1: items[0]");
        assert_eq!(
            errors[0].to_string(),
            "a.json: document 1: items[1]: metadata.name: missing: every object needs this field"
        );
    }

    #[test]
    fn json_values_may_follow_each_other() {
        let one = r#"{"apiVersion":"v1","kind":"Kite","metadata":{"name":"red"}}"#;
        assert_eq!(names("a.json", &format!("{one}\n{one}")).0, ["1 red", "2 red"]);
        assert!(names("a.json", "{\"kind\": ").1[0].starts_with("a.json: document 1: is not YAML or JSON: EOF"));
    }

    #[test]
    fn scalars_are_read_as_kubectl_reads_them() {
        let text = "apiVersion: v1\nkind: Kite\nmetadata: {name: red}\nmode: 0644\nplain: 1e3\n\
                    quoted: [\"0644\", 'no', \"1.0\"]\non: [yes, On, y, TRUE]\noff: [no, OFF, n, False]\n\
                    numbers: [1.0, -3.0, 1.5, 1e300]\n";
        let (documents, _) = parse(&"a.yaml".into(), text, "default");
        let object = &documents[0].object;
        assert_eq!(object["mode"], 420);
        assert_eq!(object["plain"], json!(1000));
        assert_eq!(object["quoted"], json!(["0644", "no", "1.0"]));
        assert_eq!(object["on"], json!([true, true, true, true]));
        assert_eq!(object["off"], json!([false, false, false, false]));
        assert_eq!(object["numbers"], json!([1, -3, 1.5, 1e300]));
        let text = r#"{"apiVersion":"v1","kind":"Kite","metadata":{"name":"red"},"replicas":1.0}"#;
        let (documents, _) = parse(&"a.json".into(), text, "default");
        assert_eq!(documents[0].object["replicas"], json!(1));
    }

    #[test]
    fn a_list_object_without_a_list_of_items_is_an_error() {
        for text in ["kind: List", "kind: List\nitems: {a: b}", "kind: KiteList\nitems: text"] {
            let (found, errors) = names("a.yaml", &format!("apiVersion: v1\n{text}\n"));
            assert_eq!(
                (found.len(), &*errors[0]),
                (0, "a.yaml: document 1: items: must be a list of objects"),
                "{text}"
            );
        }
        let called_so = "apiVersion: example.org/v1\nkind: WishList\nmetadata: {name: mine}\n";
        assert_eq!(names("a.yaml", called_so), (vec!["1 mine".to_owned()], vec![]));
    }

    #[test]
    fn a_yaml_bomb_is_an_error() {
        let mut text = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
        for (next, last) in ('b'..='k').zip('a'..) {
            let aliases = format!("*{last},").repeat(8);
            text = [text, format!("{next}: &{next} [{aliases}]\n")].concat();
        }
        let errors = names("a.yaml", &text).1;
        let told = "a.yaml: document 1: the aliases expand to more than the limit";
        assert!(errors.len() == 1 && errors[0].starts_with(told), "{errors:?}");
    }

    #[test]
    fn a_duplicate_field_is_an_error_in_yaml_and_json() {
        let yaml = format!("{}---\n{}spec: 1\nspec: 2\n", kite("red"), kite("blue"));
        let twice = "the field spec occurs twice at line";
        assert_eq!(
            names("a.yaml", &yaml),
            (vec!["1 red".into()], vec![format!("a.yaml: document 2: {twice} 9, column 1: correct the input")])
        );
        let json = r#"{"apiVersion":"v1","kind":"Kite","metadata":{"name":"red"},
            "spec":[{"a":1}],"spec":{}}"#;
        for file in ["a.json", "a.yaml"] {
            let (good, errors) = names(file, json);
            assert_eq!((good.len(), errors.len()), (0, 1), "{file}: {errors:?}");
            assert!(errors[0].starts_with(&format!("{file}: document 1: {twice} 2")), "{errors:?}");
        }
        let below = r#"{"apiVersion":"v1","kind":"Kite","metadata":{"name":"red"},"spec":[{"a":1,"a":1}]}"#;
        assert!(names("a.json", below).1[0].contains("the field a occurs twice"));
    }
}
