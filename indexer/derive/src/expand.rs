//! The implementations that are written.

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::attributes::Described;

pub(crate) fn expand(input: &DeriveInput, described: &Described) -> TokenStream {
    let Described { krate, resource, metadata, labels } = described;
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let label = match labels {
        Some(labels) => quote!(#krate::LabelMap::label(&self.#labels, name)),
        None => quote!(#krate::Metadata::label(&self.#metadata, name)),
    };
    let represents = resource.as_ref().map(|resource| {
        quote! {
            #[automatically_derived]
            impl #impl_generics #krate::Represents for #name #type_generics #where_clause {
                type Resource = #resource;
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::Meta for #name #type_generics #where_clause {
            fn id(&self) -> #krate::Id<'_> {
                #krate::Metadata::id(&self.#metadata)
            }

            fn label(&self, name: &str) -> ::core::option::Option<&str> {
                #label
            }

            fn key(&self) -> #krate::ObjectKey {
                #krate::Metadata::key(&self.#metadata)
            }
        }

        #represents
    }
}
