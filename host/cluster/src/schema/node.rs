//! A schema as a tree, read once from OpenAPI.
//!
//! There are two dialects. In the OpenAPI of built-in kinds, an object without properties can have any fields. In the
//! structural schemas of custom resources, an object without properties has no fields.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::limits::Limits;

/// One node of a schema.
#[expect(clippy::struct_excessive_bools, reason = "each field is a separate flag of a schema")]
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// The shape of the allowed values.
    pub(crate) shape: Shape,
    /// The default that the structural schema sets for an absent value.
    pub(crate) default: Option<Value>,
    /// Whether `null` is allowed.
    pub(crate) nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub(crate) keeps_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub(crate) embedded: bool,
    /// Whether the value is a resource quantity. The server writes quantities in canonical form.
    pub(crate) quantity: bool,
    /// The validations of the value. Built-in kinds have none.
    pub(crate) limits: Option<Box<Limits<Node>>>,
}

/// The shape of the values that a node allows.
#[derive(Debug, Clone, Default)]
pub(crate) enum Shape {
    /// Any value. If the value is a map, it merges by key. If the value is a list, it is atomic.
    #[default]
    Any,
    /// A single value.
    Scalar(Scalar),
    /// An object or a map.
    Map(Fields),
    /// A list.
    List(List),
}

/// The type of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
    /// A quantity: a string or a number.
    StringOrNumber,
}

/// The fields of an object, or the values of a map.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields {
    pub(crate) known: BTreeMap<String, Arc<Node>>,
    pub(crate) other: Option<Arc<Node>>,
    pub(crate) required: Vec<String>,
    pub(crate) atomic: bool,
}

/// The items of a list, and the rules for merging two lists.
#[derive(Debug, Clone)]
pub(crate) struct List {
    pub(crate) item: Arc<Node>,
    pub(crate) items: Items,
    /// The merge rule for a strategic merge patch.
    pub(crate) strategic: Strategy,
}

/// The `x-kubernetes-patch-strategy` of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// The patch replaces the whole list.
    Replace,
    /// The values of both lists are merged.
    MergeValues,
    /// The patch merges two items if they have the same value of this key.
    MergeBy(String),
}

/// The rule that identifies the items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Items {
    /// Items have no identity: the list is atomic.
    Atomic,
    /// Items are identified by their value.
    Set,
    /// Items are identified by the values of these fields.
    Keyed(Vec<String>),
}

impl Node {
    /// Returns the schema of a field, or `None` if the schema does not have the field. For a map, returns the schema of
    /// all values.
    pub(crate) fn field(&self, name: &str) -> Option<&Arc<Node>> {
        match &self.shape {
            Shape::Map(fields) => fields.known.get(name).or(fields.other.as_ref()),
            _ => None,
        }
    }
}

/// Reads OpenAPI into nodes.
pub(crate) struct Reader<'a> {
    /// The definitions to which `$ref` points. Structural schemas have none.
    definitions: Option<&'a Map<String, Value>>,
    open: Vec<String>,
}

const PREFIX: &str = "#/components/schemas/";

impl<'a> Reader<'a> {
    /// Returns a reader for the OpenAPI of built-in kinds.
    pub(crate) fn of_definitions(definitions: &'a Map<String, Value>) -> Self {
        Self { definitions: Some(definitions), open: Vec::new() }
    }

    /// Returns a reader for structural schemas.
    pub(crate) fn structural() -> Reader<'static> {
        Reader { definitions: None, open: Vec::new() }
    }

    /// Reads one schema.
    pub(crate) fn read(&mut self, schema: &Value) -> Node {
        if let (Some(name), Some(definitions)) = (schema["$ref"].as_str(), self.definitions) {
            let name = name.trim_start_matches(PREFIX).to_owned();
            // Expand a recursive type only once. For example, the JSON schema in a CustomResourceDefinition is
            // recursive.
            if self.open.contains(&name) {
                return Node::default();
            }
            self.open.push(name.clone());
            let mut node = definitions.get(&name).map(|target| self.read(target)).unwrap_or_default();
            self.open.pop();
            node.quantity = name.ends_with(".Quantity");
            node.overlay(schema);
            return node;
        }
        let structural = self.definitions.is_none();
        let mut node = Node {
            shape: self.shape(schema),
            default: schema.get("default").cloned(),
            nullable: flag(schema, "nullable"),
            keeps_unknown: flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(schema, "x-kubernetes-embedded-resource"),
            quantity: false,
            limits: structural
                .then(|| Limits::read(schema, |part| Reader::structural().read(part)))
                .flatten()
                .map(Box::new),
        };
        if node.keeps_unknown
            && let Shape::Map(fields) = &mut node.shape
            && fields.other.is_none()
        {
            fields.other = Some(Arc::new(Node { keeps_unknown: true, ..Node::default() }));
        }
        node
    }

    fn shape(&mut self, schema: &Value) -> Shape {
        if flag(schema, "x-kubernetes-int-or-string") || schema["format"] == "int-or-string" {
            return Shape::Scalar(Scalar::IntOrString);
        }
        match schema["type"].as_str() {
            Some("string") => Shape::Scalar(Scalar::String),
            Some("integer") => Shape::Scalar(Scalar::Integer),
            Some("number") => Shape::Scalar(Scalar::Number),
            Some("boolean") => Shape::Scalar(Scalar::Boolean),
            Some("array") => {
                let (mut item, items) = (self.read(&schema["items"]), items_of(schema));
                if self.definitions.is_some() {
                    item.fill_keys(&items);
                }
                Shape::List(List { item: Arc::new(item), items, strategic: strategic_of(schema) })
            }
            Some("object") => self.object(schema),
            _ if schema["oneOf"].is_array() && self.definitions.is_some() => Shape::Scalar(Scalar::StringOrNumber),
            _ => Shape::Any,
        }
    }

    fn object(&mut self, schema: &Value) -> Shape {
        let properties = schema["properties"].as_object();
        let other = match &schema["additionalProperties"] {
            Value::Bool(true) => Some(Arc::new(Node { keeps_unknown: true, ..Node::default() })),
            value @ Value::Object(_) => Some(Arc::new(self.read(value))),
            _ => None,
        };
        let open = self.definitions.is_some() || flag(schema, "x-kubernetes-preserve-unknown-fields");
        if properties.is_none() && other.is_none() && open {
            return Shape::Any;
        }
        Shape::Map(Fields {
            known: properties
                .into_iter()
                .flatten()
                .map(|(name, property)| (name.clone(), Arc::new(self.read(property))))
                .collect(),
            other,
            required: strings(&schema["required"]),
            atomic: schema["x-kubernetes-map-type"] == "atomic",
        })
    }
}

impl Node {
    /// Sets the default of each list key to the zero value of its type. In built-in kinds, an absent key has the zero
    /// value.
    fn fill_keys(&mut self, items: &Items) {
        let (Shape::Map(fields), Items::Keyed(keys)) = (&mut self.shape, items) else { return };
        for key in keys {
            if let Some(field) = fields.known.get_mut(key).filter(|field| field.default.is_none()) {
                let zero = match field.shape {
                    Shape::Scalar(Scalar::Integer) => Value::from(0),
                    _ => Value::from(""),
                };
                *field = Arc::new(Node { default: Some(zero), ..(**field).clone() });
            }
        }
    }

    /// Applies the fields that `schema` contains in addition to its `$ref`, such as a default.
    fn overlay(&mut self, schema: &Value) {
        if let Some(default) = schema.get("default") {
            self.default = Some(default.clone());
        }
        if let (Shape::Map(fields), "atomic") =
            (&mut self.shape, schema["x-kubernetes-map-type"].as_str().unwrap_or(""))
        {
            fields.atomic = true;
        }
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema[name] == Value::Bool(true)
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn items_of(schema: &Value) -> Items {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Items::Set,
        Some("map") => Items::Keyed(strings(&schema["x-kubernetes-list-map-keys"])),
        Some(_) => Items::Atomic,
        None => match strategic_of(schema) {
            Strategy::MergeBy(key) => Items::Keyed(vec![key]),
            Strategy::MergeValues => Items::Set,
            Strategy::Replace => Items::Atomic,
        },
    }
}

fn strategic_of(schema: &Value) -> Strategy {
    let strategies = schema["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
    if !strategies.split(',').any(|strategy| strategy == "merge") {
        return Strategy::Replace;
    }
    match schema["x-kubernetes-patch-merge-key"].as_str() {
        Some(key) => Strategy::MergeBy(key.to_owned()),
        None => Strategy::MergeValues,
    }
}
