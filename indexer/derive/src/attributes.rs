//! What the attributes of a struct and of its fields say.

use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Member, Path, Result, Type};

/// A struct, as far as the derive needs to know it.
pub(crate) struct Described {
    /// The path of kubewire-indexer.
    pub(crate) krate: Path,
    /// What to list.
    pub(crate) resource: Option<Type>,
    /// The field with the id.
    pub(crate) metadata: Member,
    /// The field with the labels, where that is another one.
    pub(crate) labels: Option<Member>,
}

impl Described {
    pub(crate) fn read(input: &DeriveInput) -> Result<Self> {
        let Data::Struct(data) = &input.data else {
            return Err(Error::new(input.ident.span(), "#[derive(Meta)] works on structs: implement `Meta` by hand"));
        };
        let mut krate = None;
        let mut resource = None;
        for attribute in ours(&input.attrs) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("crate") {
                    once(&mut krate, meta.value()?.call(Path::parse_mod_style)?, &meta.path)
                } else if meta.path.is_ident("resource") {
                    once(&mut resource, meta.value()?.parse()?, &meta.path)
                } else {
                    Err(meta.error("expected `resource = Type` or `crate = path`"))
                }
            })?;
        }
        let mut marked = None;
        let mut named = None;
        let mut labels = None;
        for (member, field) in data.fields.members().zip(&data.fields) {
            if field.ident.as_ref().is_some_and(|name| name == "metadata") {
                named = Some(member.clone());
            }
            read_field(field, &member, &mut marked, &mut labels)?;
        }
        let metadata = marked.or(named).ok_or_else(|| {
            Error::new(
                input.ident.span(),
                "#[derive(Meta)] needs the field with the id: name it `metadata`, or mark it #[kubewire(metadata)]",
            )
        })?;
        let krate = krate.unwrap_or_else(|| syn::parse_quote!(::kubewire_indexer));
        Ok(Self { krate, resource, metadata, labels })
    }
}

fn read_field(
    field: &Field,
    member: &Member,
    metadata: &mut Option<Member>,
    labels: &mut Option<Member>,
) -> Result<()> {
    for attribute in ours(&field.attrs) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("metadata") {
                once(metadata, member.clone(), &meta.path)
            } else if meta.path.is_ident("labels") {
                once(labels, member.clone(), &meta.path)
            } else {
                Err(meta.error("expected `metadata` or `labels`"))
            }
        })?;
    }
    Ok(())
}

fn ours(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("kubewire"))
}

fn once<T>(place: &mut Option<T>, value: T, at: &impl Spanned) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(at.span(), "this is said twice: once is enough")),
    }
}
