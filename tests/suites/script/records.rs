//! Reads the types of the contract, for the tests of the script engine and of its typings.

use std::collections::BTreeSet;
use std::path::Path;

use wit_parser::{Resolve, Type, TypeDef, TypeDefKind, TypeId};

/// The types of the contract, in the order of the file.
pub(crate) struct Contract {
    pub(crate) resolve: Resolve,
    pub(crate) types: Vec<TypeId>,
}

impl Contract {
    pub(crate) fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/policy.wit");
        let mut resolve = Resolve::default();
        let package = resolve.push_str(&path, &std::fs::read_to_string(&path).unwrap()).unwrap();
        let interface = resolve.packages[package].interfaces["types"];
        let types = resolve.interfaces[interface].types.values().copied().collect();
        Self { resolve, types }
    }

    pub(crate) fn definition(&self, id: TypeId) -> &TypeDef {
        &self.resolve.types[id]
    }

    pub(crate) fn name(&self, id: TypeId) -> String {
        pascal(self.definition(id).name.as_deref().unwrap_or_default())
    }

    /// Returns whether a type is the contract's type `json`, or a list or an option of this type.
    pub(crate) fn is_json(&self, of: &Type) -> bool {
        let Type::Id(id) = of else { return false };
        let definition = self.definition(*id);
        match &definition.kind {
            TypeDefKind::Type(Type::String) => definition.name.as_deref() == Some("json"),
            TypeDefKind::List(inner) | TypeDefKind::Option(inner) => self.is_json(inner),
            _ => false,
        }
    }

    /// Returns the names of these types, and of all types that occur inside of them.
    pub(crate) fn within(&self, names: &[&str]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for id in &self.types {
            if names.contains(&self.name(*id).as_str()) {
                self.collect(*id, &mut found);
            }
        }
        found
    }

    fn collect(&self, id: TypeId, found: &mut BTreeSet<String>) {
        let definition = self.definition(id);
        if definition.name.is_some() && !found.insert(self.name(id)) {
            return;
        }
        let inner: Vec<Type> = match &definition.kind {
            TypeDefKind::Record(record) => record.fields.iter().map(|field| field.ty).collect(),
            TypeDefKind::Variant(variant) => variant.cases.iter().filter_map(|case| case.ty).collect(),
            TypeDefKind::List(inner) | TypeDefKind::Option(inner) | TypeDefKind::Type(inner) => vec![*inner],
            _ => Vec::new(),
        };
        for of in inner {
            if let Type::Id(id) = of {
                self.collect(id, found);
            }
        }
    }
}

/// Converts a name of the contract: `api-version` becomes `ApiVersion`.
pub(crate) fn pascal(name: &str) -> String {
    name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// Converts a name of the contract: `api-version` becomes `apiVersion`.
pub(crate) fn camel(name: &str) -> String {
    let pascal = pascal(name);
    pascal[..1].to_lowercase() + &pascal[1..]
}
