//! `#[derive(Decode)]`: a call of `kaos_decode::Fields` for each field of a struct, a list of names for an enum.
//!
//! Understood are serde's `rename_all = "camelCase"`, `rename`, `default`, `default = "path"` and
//! `deny_unknown_fields`; what says nothing about reading is passed over, anything else does not compile.

mod attributes;
mod expand;

use proc_macro::TokenStream;
use quote::quote;

/// Implements `kaos_decode::Decode` as serde's attributes on the type say.
#[proc_macro_derive(Decode, attributes(serde))]
pub fn decode(input: TokenStream) -> TokenStream {
    expand::expand(input, &quote!(::kaos_decode))
}

/// As [`macro@Decode`], for crates that depend on the policy SDK alone.
#[proc_macro_derive(SdkDecode, attributes(serde))]
pub fn sdk_decode(input: TokenStream) -> TokenStream {
    expand::expand(input, &quote!(::kaos_policy_sdk::decode))
}
