//! The attribute `#[skiff::test]`, which the crate `kubeskiff-test` documents and shows.

use proc_macro::TokenStream;
use quote::quote;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, FnArg, ItemFn, Meta, PatType, Result, Token, parse_macro_input};

/// Settings that are methods of `skiff::Options`.
const OPTIONS: [&str; 4] = ["crds", "arguments", "program", "own_process"];
const EXPECTED: &str =
    "expected `crds = […]`, `arguments = […]`, `program = …`, `own_process = true` or `prepared = FUNCTION`";

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
    let (prepared, options): (Vec<&Meta>, Vec<&Meta>) =
        settings.iter().partition(|setting| setting.path().is_ident("prepared"));
    let calls = options.into_iter().map(call).collect::<Result<Vec<_>>>()?;
    let calls = calls.iter().map(|(name, values)| quote!(.#name(#values)));
    // They are for the test, not for the function in it.
    let attributes = std::mem::take(&mut function.attrs);
    let (name, output) = (&function.sig.ident, &function.sig.output);
    let arguments = function.sig.inputs.iter().map(argument).collect::<Result<Vec<_>>>()?;
    let run = run(&prepared, &quote!(async move |plane| #name(#(#arguments),*).await))?;
    Ok(quote! {
        #(#attributes)*
        #[::core::prelude::v1::test]
        fn #name() #output {
            #function
            let options = ::skiff::Options::new() #(#calls)*;
            #run
        }
    })
}

/// The call that runs `test` with the `options`, prepared if it is to be.
fn run(prepared: &[&Meta], test: &proc_macro2::TokenStream) -> Result<proc_macro2::TokenStream> {
    match prepared {
        [] => Ok(quote!(::skiff::run(options, #test))),
        [setting] => {
            let prepare = &setting.require_name_value()?.value;
            Ok(quote!(::skiff::run_prepared(options, #prepare, #test)))
        }
        [_, second, ..] => Err(Error::new_spanned(second, "a test is prepared once")),
    }
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
        Some(name) if OPTIONS.iter().any(|known| name == known) => Ok((name, &pair.value)),
        _ => Err(Error::new_spanned(&pair.path, EXPECTED)),
    }
}
