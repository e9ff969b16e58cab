//! Names and types as messages show them.

use crate::cel::ast::{Expr, ExprKind};
use crate::cel::types::Type;
use crate::meta::minor::Minor;

/// Rewords the message for version `minor`, with its name for optional types.
pub(super) fn in_words_of(minor: Minor, message: String) -> String {
    if minor < Type::OPTIONAL_SINCE { message.replace("optional_type(", "optional(") } else { message }
}

/// The first name and the whole text of a chain of selections; for a lone name unless `selected`.
pub(super) fn qualified_name(expr: &Expr, selected: bool) -> Option<(&str, String)> {
    let mut fields = Vec::new();
    let mut expr = expr;
    loop {
        match &expr.kind {
            ExprKind::Select(select) if !select.test_only => {
                fields.push(select.field.as_str());
                expr = &select.operand;
            }
            ExprKind::Ident(_) if fields.is_empty() && selected => return None,
            ExprKind::Ident(name) => {
                fields.push(name);
                fields.reverse();
                return Some((name, fields.join(".")));
            }
            _ => return None,
        }
    }
}

/// The arguments of a call as messages show them: `int.(string, bool)`.
pub(super) fn signature(types: &[Type], has_target: bool) -> String {
    let (target, args) = match types {
        [target, args @ ..] if has_target => (format!("{target}."), args),
        args => (String::new(), args),
    };
    let args: Vec<String> = args.iter().map(Type::to_string).collect();
    format!("{target}({})", args.join(", "))
}
