//! The implementations that are written.

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::attributes::Described;

pub(crate) fn expand(input: &DeriveInput, described: &Described) -> TokenStream {
    let Described { krate, resource, metadata, labels: label_map } = described;
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let (label, labels) = match label_map {
        Some(field) => {
            (quote!(#krate::LabelMap::label(&self.#field, name)), quote!(#krate::LabelMap::all(&self.#field)))
        }
        None => (
            quote!(#krate::Metadata::label(&self.#metadata, name)),
            quote!(#krate::Metadata::all_labels(&self.#metadata)),
        ),
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

            fn generation(&self) -> ::core::option::Option<i64> {
                #krate::Metadata::generation(&self.#metadata)
            }

            fn is_being_deleted(&self) -> bool {
                #krate::Metadata::is_being_deleted(&self.#metadata)
            }

            fn owners(&self) -> ::std::vec::Vec<#krate::OwnerReference<'_>> {
                #krate::Metadata::owners(&self.#metadata)
            }

            fn all_labels(&self) -> ::std::vec::Vec<(&str, &str)> {
                #labels
            }

            fn all_annotations(&self) -> ::std::vec::Vec<(::std::borrow::Cow<'_, str>, ::std::borrow::Cow<'_, str>)> {
                #krate::Metadata::all_annotations(&self.#metadata)
            }
        }

        #represents
    }
}
