//! Decides from the schema whether server-side apply treats a value as a map, a list or a leaf.

use serde_json::Value;

use crate::schema::{List, Node, Shape};

pub(super) enum Kind<'a> {
    Map(bool),
    List(&'a List),
    Leaf,
}

/// Returns the kind of a value. If the schema allows any value, the type of the value decides.
pub(super) fn kind_of<'a>(node: &'a Node, value: Option<&Value>) -> Kind<'a> {
    match &node.shape {
        Shape::Map(fields) => Kind::Map(fields.atomic),
        Shape::List(list) => Kind::List(list),
        Shape::Any if value.is_some_and(Value::is_object) => Kind::Map(false),
        Shape::Any | Shape::Scalar(_) => Kind::Leaf,
    }
}

/// Returns the schema of a field. If the schema does not declare the field, returns a schema that allows any value.
pub(super) fn field_of<'a>(node: &'a Node, name: &str) -> &'a Node {
    static ANYTHING: Node = Node {
        shape: Shape::Any,
        default: None,
        nullable: false,
        keeps_unknown: true,
        embedded: false,
        quantity: false,
        limits: None,
    };
    node.field(name).map_or(&ANYTHING, |field| field)
}

pub(super) fn is_hollow(length: Option<usize>) -> bool {
    length.is_none_or(|length| length == 0)
}
