//! Generates `types.go`, the types for authors of policies in Go, from the contract.

use std::fmt::Write as _;
use std::path::Path;

use wit_parser::{Case, Docs, Field, Type, TypeDefKind};

use crate::script::records::{Contract, pascal};

/// The beginning of the file.
const HEAD: &str = "\
// Generated from wit/policy.wit of the KAOS policy operator by
// UPDATE_GOLDEN=1 cargo test --package kaos-tests --test policies go_types. DO NOT EDIT.

package kaos
";

/// Returns a name of the contract as an exported name of Go.
fn exported(name: &str) -> String {
    match name {
        "json" => "JSON".to_owned(),
        "id" => "ID".to_owned(),
        _ => pascal(name).replace("Api", "API"),
    }
}

/// Returns a comment of the contract as a comment of Go.
fn comment(docs: &Docs, indent: &str) -> String {
    let lines = docs.contents.as_deref().unwrap_or_default().trim().lines();
    let line = |line: &str| format!("{indent}// {line}").trim_end().to_owned() + "\n";
    lines.map(line).collect()
}

struct Types(Contract);

impl Types {
    fn shown(&self, of: &Type) -> String {
        match of {
            Type::String => "string".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::U32 => "uint32".to_owned(),
            Type::Id(id) => match &self.0.definition(*id).kind {
                TypeDefKind::List(inner) => format!("[]{}", self.shown(inner)),
                TypeDefKind::Option(inner) => self.shown(inner),
                TypeDefKind::Tuple(tuple) => {
                    let items: Vec<String> = tuple.types.iter().map(|of| self.shown(of)).collect();
                    assert!(items.windows(2).all(|two| two[0] == two[1]), "a tuple of different types is no array");
                    format!("[{}]{}", items.len(), items[0])
                }
                _ => exported(self.0.definition(*id).name.as_deref().unwrap_or_default()),
            },
            other => panic!("the contract has the type {other:?}: choose its type in Go"),
        }
    }

    /// Returns the struct tag of an optional field. Only text fields can be optional, because an empty text stands for
    /// a missing value in Go.
    fn tag(&self, of: &Type) -> &'static str {
        let Type::Id(id) = of else { return "" };
        let TypeDefKind::Option(inner) = &self.0.definition(*id).kind else { return "" };
        assert!(["string", "JSON"].contains(&self.shown(inner).as_str()), "an option that is no text");
        " `wit:\"option\"`"
    }

    fn record(&self, name: &str, fields: &[Field]) -> String {
        let mut text = format!("type {name} struct {{\n");
        // Collect fields on consecutive lines, because gofmt aligns the types of these fields. A comment ends the
        // group.
        let mut group: Vec<&Field> = Vec::new();
        let flush = |text: &mut String, group: &mut Vec<&Field>| {
            let width = group.iter().map(|field| exported(&field.name).len()).max().unwrap_or_default();
            for field in group.drain(..) {
                let (name, of) = (exported(&field.name), self.shown(&field.ty));
                let _ = writeln!(text, "\t{name:width$} {of}{}", self.tag(&field.ty));
            }
        };
        for field in fields {
            let docs = comment(&field.docs, "\t");
            if !docs.is_empty() {
                flush(&mut text, &mut group);
                text += &docs;
            }
            group.push(field);
        }
        flush(&mut text, &mut group);
        if name == "Subject" {
            text += "\n\tparsed parsed\n";
        }
        text + "}\n"
    }

    fn variant(&self, name: &str, cases: &[Case]) -> String {
        let error = if name == "Refusal" { "\n\terror" } else { "" };
        let mut text = format!("type {name} interface {{{error}\n\tis{name}()\n}}\n");
        let mut zeros = Vec::new();
        for case in cases {
            let own = exported(&case.name);
            let content = case.ty.map(|of| self.shown(&of));
            let docs = comment(&case.docs, "");
            let docs = if docs.is_empty() { String::new() } else { format!("//\n{docs}") };
            let content = match content.as_deref() {
                None => "struct{}".to_owned(),
                Some("Refusal") => "struct{ Refusal Refusal }".to_owned(),
                Some(of) => of.to_owned(),
            };
            zeros.push(if content == "string" || content == "JSON" {
                format!("{own}(\"\")")
            } else {
                format!("{own}{{}}")
            });
            let _ = write!(
                text,
                "\n// {own} is a case of {name}.\n{docs}type {own} {content}\n\nfunc ({own}) is{name}() {{}}\n"
            );
        }
        let _ = write!(text, "\nfunc init() {{\n\twire.Variant[{name}]({})\n}}\n", zeros.join(", "));
        text
    }

    fn text(&self) -> String {
        let mut text = String::from(HEAD);
        let wire = "github.com/kaos-tools/policy-operator/guest-policies/go/kaos/internal/wire";
        let _ = write!(text, "\nimport \"{wire}\"\n");
        for id in &self.0.types {
            let definition = self.0.definition(*id);
            let name = exported(definition.name.as_deref().unwrap_or_default());
            let docs = comment(&definition.docs, "");
            let docs = match (docs.is_empty(), docs.starts_with(&format!("// {name} "))) {
                (true, _) => format!("// {name} is a type of the contract.\n"),
                (false, true) => docs,
                (false, false) => format!("// {name} is a type of the contract.\n//\n{docs}"),
            };
            let declared = match &definition.kind {
                TypeDefKind::Record(record) => self.record(&name, &record.fields),
                TypeDefKind::Variant(variant) => self.variant(&name, &variant.cases),
                TypeDefKind::Enum(of) => {
                    let cases: Vec<String> = of.cases.iter().map(|case| name.clone() + &exported(&case.name)).collect();
                    let (first, rest) = cases.split_first().unwrap();
                    let rest: String = rest.iter().flat_map(|case| ["\t", case, "\n"]).collect();
                    format!("type {name} uint8\n\n// The cases of {name}.\nconst (\n\t{first} {name} = iota\n{rest})\n")
                }
                TypeDefKind::Type(Type::String) if name == "JSON" => "type JSON string\n".to_owned(),
                TypeDefKind::Type(Type::String) => format!("type {name} = string\n"),
                other => panic!("the contract has {other:?}: choose its type in Go"),
            };
            let _ = write!(text, "\n{docs}{declared}");
        }
        text
    }
}

#[test]
fn the_types_of_policies_in_go_follow_the_contract() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-policies/go/kaos/types.go");
    let types = Types(Contract::read()).text();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &types).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == types,
        "types.go is old: UPDATE_GOLDEN=1 cargo test --package kaos-tests --test policies go_types"
    );
}
