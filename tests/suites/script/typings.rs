//! Generates `policy.d.ts`, the types for authors of scripts, from the contract.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use wit_parser::{Docs, Field, Type, TypeDefKind};

use super::records::{Contract, camel};
use super::table::fields::{EMPTY, REQUIRED};

/// The part of `policy.d.ts` that does not come from the contract.
const GLOBALS: &str = include_str!("globals.d.ts");

struct Typings {
    contract: Contract,
    /// The names of the records that scripts return, but never receive.
    ///
    /// In these records, scripts may omit fields that have a default.
    written: BTreeSet<String>,
}

impl Typings {
    fn new() -> Self {
        let contract = Contract::read();
        let read = contract.within(&["Subject", "EnvVar", "Observation"]);
        let written = contract.within(&["Descriptor", "Need", "Plan", "Refusal", "Report"]);
        Self { written: written.difference(&read).cloned().collect(), contract }
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "// The types of a policy. Generated from wit/policy.wit of the KAOS policy operator. Do not edit.\n\n\
             /** A value that JSON can express: a Kubernetes object or a part of one. */\nexport type Json = any;\n",
        );
        for id in &self.contract.types {
            let (name, definition) = (self.contract.name(*id), self.contract.definition(*id));
            let declared = match &definition.kind {
                TypeDefKind::Record(record) => {
                    let mut fields = String::new();
                    for field in &record.fields {
                        fields += &self.field(&name, field);
                    }
                    format!("export interface {name} {{\n{fields}}}\n")
                }
                TypeDefKind::Variant(variant) => {
                    let mut cases = String::new();
                    for case in &variant.cases {
                        let val = case.ty.map(|of| format!("; val: {}", self.shown(&of))).unwrap_or_default();
                        let _ = write!(cases, "\n{}  | {{ tag: '{}'{val} }}", comment(&case.docs, "  "), case.name);
                    }
                    format!("export type {name} ={cases};\n")
                }
                TypeDefKind::Enum(of) => {
                    let cases: Vec<_> = of.cases.iter().map(|case| format!("'{}'", case.name)).collect();
                    format!("export type {name} = {};\n", cases.join(" | "))
                }
                _ => continue,
            };
            let _ = write!(text, "\n{}{declared}", comment(&definition.docs, ""));
        }
        text + "\n" + GLOBALS
    }

    fn field(&self, record: &str, field: &Field) -> String {
        let path = format!("{record}.{}", field.name.replace('-', "_"));
        let is_option = self.is(&field.ty, |kind| matches!(kind, TypeDefKind::Option(_)));
        let has_default = self.is(&field.ty, |kind| matches!(kind, TypeDefKind::List(_))) || field.ty == Type::Bool;
        let may_be_absent = self.written.contains(record)
            && (EMPTY.contains(&path.as_str()) || has_default && !REQUIRED.contains(&path.as_str()));
        let mark = if is_option || may_be_absent { "?" } else { "" };
        format!("{}  {}{mark}: {};\n", comment(&field.docs, "  "), camel(&field.name), self.shown(&field.ty))
    }

    fn is(&self, of: &Type, test: impl Fn(&TypeDefKind) -> bool) -> bool {
        matches!(of, Type::Id(id) if test(&self.contract.definition(*id).kind))
    }

    fn shown(&self, of: &Type) -> String {
        match of {
            Type::String => "string".to_owned(),
            Type::Bool => "boolean".to_owned(),
            Type::U32 => "number".to_owned(),
            Type::Id(id) => match &self.contract.definition(*id).kind {
                TypeDefKind::List(inner) => format!("{}[]", self.shown(inner)),
                TypeDefKind::Option(inner) => self.shown(inner),
                TypeDefKind::Tuple(tuple) => {
                    format!("[{}]", tuple.types.iter().map(|of| self.shown(of)).collect::<Vec<_>>().join(", "))
                }
                _ => self.contract.name(*id),
            },
            other => panic!("the contract has the type {other:?}: say how it looks in a script"),
        }
    }
}

/// Converts a comment of the contract to a TypeScript comment.
fn comment(docs: &Docs, indent: &str) -> String {
    let Some(text) = &docs.contents else { return String::new() };
    if text.trim().lines().count() == 1 {
        return format!("{indent}/** {} */\n", text.trim());
    }
    let lines: String = text.trim().lines().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "{}", format!("{indent} * {line}").trim_end());
        all
    });
    format!("{indent}/**\n{lines}{indent} */\n")
}

#[test]
fn the_typings_of_scripts_follow_the_contract() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-policies/template/javascript/policy.d.ts");
    let typings = Typings::new().text();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &typings).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == typings,
        "policy.d.ts is old: UPDATE_GOLDEN=1 cargo test --package kaos-tests --test policies script"
    );
}
