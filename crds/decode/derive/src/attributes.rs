//! Reads the attributes of serde that decoding uses.

use proc_macro2::{TokenStream, TokenTree};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, LitStr, Token};

/// The value of an absent field.
#[derive(Default)]
pub(crate) enum Absent {
    /// The value that `Decode::absent` returns for the type.
    #[default]
    ByType,
    /// `Default::default()`.
    Default,
    /// The value that the function in serde's `default = "path"` returns.
    Call(TokenStream),
}

/// The attributes of a type, a field or a variant.
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) rename: Option<String>,
    pub(crate) camel_case: bool,
    pub(crate) deny_unknown_fields: bool,
    pub(crate) absent: Absent,
    deserialize_with: bool,
}

impl Attributes {
    pub(crate) fn of(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            attribute.parse_nested_meta(|meta| found.read(&meta))?;
            // Accept `deserialize_with` only together with `default`. A function for `deserialize_with` may only map
            // null to the default, and `Decode` maps null to the default in any case.
            if found.deserialize_with && !matches!(found.absent, Absent::Call(_)) {
                return Err(syn::Error::new_spanned(
                    attribute,
                    "Decode supports `deserialize_with` only together with `default`",
                ));
            }
        }
        Ok(found)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match name.as_str() {
            "rename" => self.rename = Some(text(meta)?.value()),
            "rename_all" => match text(meta)? {
                case if case.value() == "camelCase" => self.camel_case = true,
                other => return Err(syn::Error::new_spanned(other, "Decode knows camelCase only")),
            },
            "deny_unknown_fields" => self.deny_unknown_fields = true,
            "default" if meta.input.peek(Token![=]) => {
                let path = text(meta)?;
                self.absent = Absent::Call(path.value().parse()?);
            }
            "default" => self.absent = Absent::Default,
            "deserialize_with" => {
                text(meta)?;
                self.deserialize_with = true;
            }
            "skip_serializing_if" | "serialize_with" => {
                meta.value()?.parse::<TokenTree>()?;
            }
            _ => return Err(meta.error("Decode does not know this attribute")),
        }
        Ok(())
    }

    /// Returns the serialized name of the Rust name `name`.
    pub(crate) fn outer_name(&self, name: &str, camel_case: bool) -> String {
        match &self.rename {
            Some(rename) => rename.clone(),
            None if camel_case => camel(name),
            None => name.to_owned(),
        }
    }
}

fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    meta.value()?.parse()
}

/// Converts `max_steps` and `MaxSteps` to `maxSteps`.
fn camel(name: &str) -> String {
    let mut camel = String::new();
    let mut upper = false;
    for c in name.chars() {
        if c == '_' {
            upper = !camel.is_empty();
        } else if upper {
            camel.push(c.to_ascii_uppercase());
            upper = false;
        } else if camel.is_empty() {
            camel.push(c.to_ascii_lowercase());
        } else {
            camel.push(c);
        }
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::camel;

    #[test]
    fn fields_and_variants_are_written_in_camel_case() {
        for (rust, outside) in [("max_steps", "maxSteps"), ("MaxSteps", "maxSteps"), ("a", "a"), ("A", "a")] {
            assert_eq!(camel(rust), outside);
        }
    }
}
