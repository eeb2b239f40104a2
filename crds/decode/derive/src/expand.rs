//! Generates the implementation of `Decode` for one type.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DataEnum, DeriveInput, Fields, FieldsNamed, parse};

use crate::attributes::{Absent, Attributes};

/// Generates an implementation of `Decode` for the type in `input`. `runtime` is the path of the crate that defines the
/// trait.
pub(crate) fn expand(input: proc_macro::TokenStream, runtime: &TokenStream) -> proc_macro::TokenStream {
    let made = parse(input).and_then(|input: DeriveInput| implementation(&input, runtime));
    made.unwrap_or_else(|error| error.to_compile_error()).into()
}

fn implementation(input: &DeriveInput, runtime: &TokenStream) -> syn::Result<TokenStream> {
    let attributes = Attributes::of(&input.attrs)?;
    let body = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => of_struct(&attributes, fields, runtime)?,
            _ => return Err(syn::Error::new_spanned(input, "Decode reads structs with named fields")),
        },
        Data::Enum(data) => of_enum(&attributes, data, runtime)?,
        Data::Union(_) => return Err(syn::Error::new_spanned(input, "Decode reads no unions")),
    };
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics #runtime::Decode for #name #arguments #bounds {
            fn decode(
                value: &#runtime::Value,
            ) -> ::core::result::Result<Self, #runtime::Error> {
                #body
            }
        }
    })
}

fn of_struct(of_type: &Attributes, fields: &FieldsNamed, runtime: &TokenStream) -> syn::Result<TokenStream> {
    let mut all: Vec<(String, &Ident, Absent)> = Vec::new();
    for field in &fields.named {
        let attributes = Attributes::of(&field.attrs)?;
        let Some(ident) = &field.ident else { continue };
        let name = attributes.outer_name(&ident.unraw().to_string(), of_type.camel_case);
        all.push((name, ident, attributes.absent));
    }
    let only = of_type.deny_unknown_fields.then(|| {
        let known = all.iter().map(|(name, ..)| name);
        quote!(fields.only(&[#(#known),*])?;)
    });
    // The members of a JSON object are sorted by name. Decode the fields in the order of their sorted names, so that
    // the first wrong member causes the error.
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let read = if matches!(of_type.absent, Absent::ByType) {
        let read = all.iter().map(|(name, ident, absent)| match absent {
            Absent::ByType => quote!(#ident: fields.get(#name)?),
            Absent::Default => quote!(#ident: fields.get_or(#name, ::core::default::Default::default())?),
            Absent::Call(path) => quote!(#ident: fields.get_or(#name, #path())?),
        });
        quote!(::core::result::Result::Ok(Self { #(#read),* }))
    } else {
        let read = all.iter().map(|(name, ident, _)| quote!(fields.set(#name, &mut read.#ident)?;));
        quote! {
            let mut read = <Self as ::core::default::Default>::default();
            #(#read)*
            ::core::result::Result::Ok(read)
        }
    };
    Ok(quote! {
        let fields = #runtime::Fields::of(value)?;
        #only
        #read
    })
}

fn of_enum(of_type: &Attributes, data: &DataEnum, runtime: &TokenStream) -> syn::Result<TokenStream> {
    let (mut names, mut arms) = (Vec::new(), Vec::new());
    for (index, variant) in data.variants.iter().enumerate() {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new_spanned(
                variant,
                "Decode supports only variants without fields: remove the fields",
            ));
        }
        let ident = &variant.ident;
        names.push(Attributes::of(&variant.attrs)?.outer_name(&ident.to_string(), of_type.camel_case));
        let last = index + 1 == data.variants.len();
        arms.push(if last { quote!(_ => Self::#ident) } else { quote!(#index => Self::#ident) });
    }
    Ok(quote! {
        ::core::result::Result::Ok(match #runtime::variant(value, &[#(#names),*])? { #(#arms,)* })
    })
}
