//! The concrete tree: the text as written, including operators and brackets.

use crate::cel::lexer::Token;

/// The id of a node in a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeId(pub(super) u32);

/// All nodes of an expression.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<SyntaxNode>,
}

/// A token of the tree. A token that recovery inserted has a position but no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub token: Token,
    pub is_missing: bool,
}

/// What one rule of the grammar read. Rules that only pass on another rule's result have no node.
#[derive(Debug)]
pub enum SyntaxNode {
    /// Nothing usable, because of a fault.
    Nothing,
    /// A fault at the start of an operand or its operators.
    BrokenUnary {
        start: Token,
    },
    Conditional {
        condition: NodeId,
        question: Leaf,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    /// Operands joined by `&&` or `||`.
    Logical {
        is_or: bool,
        first: NodeId,
        rest: Vec<(Leaf, NodeId)>,
    },
    /// A comparison or arithmetic.
    Binary {
        left: NodeId,
        operator: Leaf,
        right: NodeId,
    },
    /// One or more `!`, or one or more `-`.
    Unary {
        /// The number of operators.
        operators: u32,
        first: Leaf,
        operand: Option<NodeId>,
    },
    Select {
        operand: NodeId,
        dot: Leaf,
        optional: bool,
        field: FieldName,
    },
    MemberCall {
        operand: NodeId,
        name: Leaf,
        parenthesis: Leaf,
        args: Vec<NodeId>,
    },
    Index {
        operand: NodeId,
        bracket: Leaf,
        optional: bool,
        index: Option<NodeId>,
    },
    Ident {
        start: Token,
        leading_dot: bool,
        name: Leaf,
    },
    GlobalCall {
        start: Token,
        leading_dot: bool,
        name: Leaf,
        parenthesis: Leaf,
        args: Vec<NodeId>,
    },
    List {
        bracket: Leaf,
        elements: Vec<Element>,
    },
    Map {
        brace: Leaf,
        entries: Vec<SyntaxEntry>,
    },
    Message {
        names: Vec<Leaf>,
        leading_dot: bool,
        brace: Leaf,
        /// The start of the list of fields.
        start: Option<Token>,
        fields: Vec<SyntaxField>,
    },
    Literal {
        minus: Option<Leaf>,
        token: Leaf,
    },
}

/// The name after a dot, or a field's name, plain or in backquotes; `None` after a fault.
#[derive(Clone, Copy, Debug)]
pub struct FieldName {
    pub start: Token,
    pub name: Option<Leaf>,
}

/// An element of a list, or a key of a map.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    pub start: Token,
    pub question: Option<Leaf>,
    pub value: Option<NodeId>,
}

#[derive(Clone, Copy, Debug)]
pub struct SyntaxEntry {
    pub key: Element,
    pub colon: Leaf,
    pub value: NodeId,
}

#[derive(Clone, Copy, Debug)]
pub struct SyntaxField {
    pub start: Token,
    pub question: Option<Leaf>,
    pub name: Option<FieldName>,
    pub colon: Leaf,
    pub value: NodeId,
}

impl Tree {
    pub(super) fn add(&mut self, node: SyntaxNode) -> NodeId {
        // A tree has no more nodes than its text has characters.
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        id
    }

    pub fn node(&self, id: NodeId) -> &SyntaxNode {
        &self.nodes[id.0 as usize]
    }
}
