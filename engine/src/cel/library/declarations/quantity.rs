//! Quantities, such as `100Mi`.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Bool, Double, Int, String};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new(
            "add",
            [
                OverloadDecl::member("quantity_add", [quantity(), quantity()], quantity()),
                OverloadDecl::member("quantity_add_int", [quantity(), Int], quantity()),
            ],
        ),
        FunctionDecl::new("asApproximateFloat", [OverloadDecl::member("quantity_get_float", [quantity()], Double)]),
        FunctionDecl::new("asInteger", [OverloadDecl::member("quantity_get_int", [quantity()], Int)]),
        FunctionDecl::new("compareTo", [OverloadDecl::member("quantity_compare_to", [quantity(), quantity()], Int)]),
        FunctionDecl::new(
            "isGreaterThan",
            [OverloadDecl::member("quantity_is_greater_than", [quantity(), quantity()], Bool)],
        ),
        FunctionDecl::new("isInteger", [OverloadDecl::member("quantity_is_integer", [quantity()], Bool)]),
        FunctionDecl::new(
            "isLessThan",
            [OverloadDecl::member("quantity_is_less_than", [quantity(), quantity()], Bool)],
        ),
        FunctionDecl::new("isQuantity", [OverloadDecl::global("is_quantity_string", [String], Bool)]),
        FunctionDecl::new("quantity", [OverloadDecl::global("string_to_quantity", [String], quantity())]),
        FunctionDecl::new("sign", [OverloadDecl::global("quantity_sign", [quantity()], Int)]),
        FunctionDecl::new(
            "sub",
            [
                OverloadDecl::member("quantity_sub", [quantity(), quantity()], quantity()),
                OverloadDecl::member("quantity_sub_int", [quantity(), Int], quantity()),
            ],
        ),
    ]
}

fn quantity() -> Type {
    Type::object("kubernetes.Quantity")
}
