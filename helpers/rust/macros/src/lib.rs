//! The attribute `#[skiff::test]`, which the crate `kubeskiff-test` documents and shows.

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, FnArg, ItemFn, Meta, PatType, Result, Token, parse_macro_input};

/// Makes an async function a test with a control plane of its own. See the crate `kubeskiff-test`.
#[proc_macro_attribute]
pub fn test(settings: TokenStream, function: TokenStream) -> TokenStream {
    let function = parse_macro_input!(function as ItemFn);
    expand(settings, function).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(settings: TokenStream, mut function: ItemFn) -> Result<proc_macro2::TokenStream> {
    if function.sig.asyncness.is_none() {
        return Err(Error::new_spanned(&function.sig, "a test with a control plane is an `async fn`"));
    }
    let settings = Punctuated::<Meta, Token![,]>::parse_terminated.parse(settings)?;
    let calls = settings.iter().map(call).collect::<Result<Vec<_>>>()?;
    let calls = calls.iter().map(|(name, values)| quote!(.#name(#values)));
    // They are for the test, not for the function in it.
    let attributes = std::mem::take(&mut function.attrs);
    let (name, output) = (&function.sig.ident, &function.sig.output);
    let arguments = function.sig.inputs.iter().map(argument).collect::<Result<Vec<_>>>()?;
    Ok(quote! {
        #(#attributes)*
        #[::core::prelude::v1::test]
        fn #name() #output {
            #function
            ::skiff::run(::skiff::Options::new() #(#calls)*, async move |plane| #name(#(#arguments),*).await)
        }
    })
}

/// What is given for a parameter: its type says how it is made of the control plane.
fn argument(parameter: &FnArg) -> Result<proc_macro2::TokenStream> {
    match parameter {
        FnArg::Typed(PatType { ty, .. }) => Ok(quote!(<#ty as ::skiff::FromPlane>::from_plane(&plane).await)),
        FnArg::Receiver(this) => Err(Error::new_spanned(this, "a test is not a method")),
    }
}

/// The method of the options that a setting stands for, and its argument.
fn call(setting: &Meta) -> Result<(&syn::Ident, &Expr)> {
    let pair = setting.require_name_value()?;
    match pair.path.get_ident() {
        Some(name) if ["crds", "arguments", "program"].iter().any(|known| name == known) => Ok((name, &pair.value)),
        _ => Err(Error::new_spanned(&pair.path, "expected `crds = […]`, `arguments = […]` or `program = …`")),
    }
}
