//! Provides `#[derive(Decode)]`. For a struct, the generated code calls `kaos_decode::Fields` once for each field. For
//! an enum, the generated code contains a list of names.
//!
//! The derive supports serde's `rename_all = "camelCase"`, `rename`, `default`, `default = "path"` and
//! `deny_unknown_fields`. The derive ignores attributes that concern only serialization. Any other attribute of serde
//! is a compile error.

mod attributes;
mod expand;

use proc_macro::TokenStream;
use quote::quote;

/// Implements `kaos_decode::Decode` with the names and defaults of serde's attributes.
#[proc_macro_derive(Decode, attributes(serde))]
pub fn decode(input: TokenStream) -> TokenStream {
    expand::expand(input, &quote!(::kaos_decode))
}

/// Implements the same trait as [`macro@Decode`], for crates that depend only on the policy SDK.
#[proc_macro_derive(SdkDecode, attributes(serde))]
pub fn sdk_decode(input: TokenStream) -> TokenStream {
    expand::expand(input, &quote!(::kaos_policy_sdk::decode))
}
