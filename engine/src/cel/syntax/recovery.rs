//! Reports syntax errors, and decides where reading continues after one.
//!
//! The rules are those of ANTLR's default strategy: an extra token is skipped, and a missing one is inserted; if
//! neither helps, tokens are skipped until one comes that an active rule waits for. After a report nothing more is
//! reported until an expected token is read. cel-go limits how often and how far this goes.

use crate::cel::ast::{Range, SourceInfo};
use crate::cel::error::Issue;
use crate::cel::lexer::{Token, TokenKind, Tokens};

use super::place::{ExpectedTokens, TokenSet};
use super::tree::{Leaf, NodeId, Tree};
use super::{DEPTH_MAX, RECOVERIES_MAX, REPORTS_MAX, SKIPPED_MAX};
use crate::cel::ast::Location;

/// The rules that may be nested within themselves; others are so only through `Expr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrammarRule {
    Expr,
    Relation,
    Calc,
    Other,
}

/// The error that reading cannot continue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopped;

/// Why a rule did not complete.
#[derive(Clone, Copy, Debug)]
pub(super) enum RuleFailure {
    /// The current token is not allowed here.
    Mismatch,
    /// No alternative begins with the tokens from the first to the second index.
    NoViable(usize, usize),
    Stopped,
}

impl From<Stopped> for RuleFailure {
    fn from(_: Stopped) -> RuleFailure {
        RuleFailure::Stopped
    }
}

/// The state of a descent.
#[derive(Debug)]
pub(super) struct RuleReader<'t> {
    source: &'t SourceInfo,
    tokens: &'t Tokens,
    /// The index of the current token.
    pub at: usize,
    pub tree: Tree,
    issues: Vec<Issue>,
    /// The number of the lexer's faults that were already reported.
    lexical_faults: usize,
    place: ExpectedTokens,
    /// For each active rule, the tokens that may follow in the rule that called it.
    follows: Vec<TokenSet>,
    depths: [u16; 3],
    is_recovering: bool,
    last_fault_at: Option<usize>,
    /// A bit for each position of a fault since the last expected token.
    fault_places: u64,
    recoveries: u32,
    reports: u32,
    is_stopped: bool,
}

/// The result of reading a text.
#[derive(Debug)]
pub struct RecoveredParse {
    /// The tree; `None` if reading was given up.
    pub tree: Option<(Tree, NodeId)>,
    pub issues: Vec<Issue>,
}

impl<'t> RuleReader<'t> {
    /// Makes a reader that is positioned before the first token.
    pub fn new(source: &'t SourceInfo, tokens: &'t Tokens) -> Self {
        RuleReader {
            source,
            tokens,
            at: 0,
            tree: Tree::default(),
            issues: Vec::new(),
            lexical_faults: 0,
            place: super::place::START,
            follows: Vec::new(),
            depths: [0; 3],
            is_recovering: false,
            last_fault_at: None,
            fault_places: 0,
            recoveries: 0,
            reports: 0,
            is_stopped: false,
        }
    }

    /// Returns the result; `root` is the outcome of the start rule.
    pub fn finish(self, root: Result<NodeId, Stopped>) -> RecoveredParse {
        let root = root.ok().filter(|_| !self.is_stopped);
        RecoveredParse { tree: root.map(|root| (self.tree, root)), issues: self.issues }
    }
}

impl RuleReader<'_> {
    /// The token `ahead` positions after the current one; 0 is the current one. Reports the lexer's faults before it.
    pub fn token(&mut self, ahead: usize) -> Token {
        let index = (self.at + ahead).min(self.tokens.tokens.len() - 1);
        while let Some(fault) = self.tokens.faults.get(self.lexical_faults) {
            if fault.tokens_before > index {
                break;
            }
            self.lexical_faults += 1;
            let message = format!("token recognition error at: '{}'", self.text(fault.range));
            self.report(fault.range.start, &message);
        }
        self.tokens.tokens[index]
    }

    pub fn kind(&mut self, ahead: usize) -> TokenKind {
        self.token(ahead).kind
    }

    fn text(&self, range: Range) -> String {
        self.source.text[range.start as usize..range.end as usize].iter().collect()
    }

    /// Enters a rule whose caller continues with `follow`.
    pub fn enter(&mut self, rule: GrammarRule, follow: TokenSet) -> Result<(), Stopped> {
        if self.is_stopped {
            return Err(Stopped);
        }
        if rule != GrammarRule::Other {
            // The rule's first token is read first, and with it whatever the lexer could not read before it.
            self.token(0);
            let depth = &mut self.depths[rule as usize];
            *depth += 1;
            if *depth > DEPTH_MAX {
                return Err(self.stop(format!("expression recursion limit exceeded: {DEPTH_MAX}")));
            }
        }
        self.follows.push(follow);
        Ok(())
    }

    pub fn leave(&mut self, rule: GrammarRule) {
        self.follows.pop();
        if rule != GrammarRule::Other {
            self.depths[rule as usize] -= 1;
        }
    }

    /// Sets the reader's position in its rule.
    pub fn stand(&mut self, place: ExpectedTokens) {
        self.place = place;
    }

    /// Reads the current token, which is an expected one.
    pub fn take(&mut self) -> Leaf {
        self.end_fault();
        let token = self.token(0);
        self.advance();
        Leaf { token, is_missing: false }
    }

    /// Reads a token of the kind that `place` expects. Skips one wrong token or inserts a missing one if that helps.
    pub fn expect(&mut self, place: ExpectedTokens) -> Result<Leaf, RuleFailure> {
        self.place = place;
        if place.next.contains(self.kind(0)) {
            return Ok(self.take());
        }
        self.count_recovery()?;
        if self.skip_unwanted() {
            return Ok(self.take());
        }
        let current = self.token(0);
        if self.expected_with(place.after).contains(current.kind) {
            self.report_missing();
            return Ok(self.missing(place));
        }
        Err(RuleFailure::Mismatch)
    }

    /// Makes sure, before a choice, that the current token is allowed at `place`.
    pub fn check(&mut self, place: ExpectedTokens) -> Result<(), RuleFailure> {
        self.place = place;
        if self.is_recovering || self.can_come() || self.skip_unwanted() {
            return Ok(());
        }
        Err(RuleFailure::Mismatch)
    }

    /// Makes sure, within a loop, that the current token is allowed at `place`; skips tokens that are not.
    pub fn check_repeated(&mut self, place: ExpectedTokens) {
        self.place = place;
        if self.is_recovering || self.can_come() {
            return;
        }
        self.report_unwanted();
        let until = self.expected().and(self.recovery_set());
        while !matches!(self.kind(0), TokenKind::EndOfInput) && !until.contains(self.kind(0)) {
            self.advance();
        }
    }

    /// Reports the fault that ended a rule, if any, and skips to where the active rules can continue.
    pub fn settle(&mut self, outcome: Result<(), RuleFailure>) -> Result<(), Stopped> {
        let fault = match outcome {
            Ok(()) => return Ok(()),
            Err(RuleFailure::Stopped) => return Err(Stopped),
            Err(fault) => fault,
        };
        self.report_fault(fault);
        self.recover()
    }

    /// The tokens that are allowed here, in this rule and those that called it.
    pub fn expected(&self) -> TokenSet {
        let expected = self.expected_with(self.place.next);
        if self.tokens.quoted_names { expected } else { expected.without(TokenKind::EscapedIdentifier) }
    }

    pub fn expected_with(&self, next: TokenSet) -> TokenSet {
        let mut expected = next;
        for follow in self.follows.iter().rev() {
            if !expected.may_end() {
                return expected;
            }
            expected = expected.without_end().and(*follow);
        }
        if expected.may_end() { expected.and(super::place::END_OF_INPUT.next) } else { expected }.without_end()
    }

    fn can_come(&mut self) -> bool {
        self.place.next.may_end() || self.place.next.contains(self.kind(0))
    }

    fn recovery_set(&self) -> TokenSet {
        self.follows.iter().fold(TokenSet::NONE, |set, follow| set.and(*follow)).without_end()
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.tokens.len() - 1);
    }

    fn end_fault(&mut self) {
        self.is_recovering = false;
        self.fault_places = 0;
        self.last_fault_at = None;
    }

    /// Skips the current token if the next one is expected.
    fn skip_unwanted(&mut self) -> bool {
        let next = self.kind(1);
        if !self.expected().contains(next) {
            return false;
        }
        self.report_unwanted();
        self.advance();
        self.end_fault();
        true
    }

    fn missing(&mut self, place: ExpectedTokens) -> Leaf {
        let mut current = self.token(0);
        if current.kind == TokenKind::EndOfInput && self.at > 0 {
            current = self.tokens.tokens[self.at - 1];
        }
        let kind = place.next.kinds().next().unwrap_or(TokenKind::EndOfInput);
        let start = current.range.start;
        Leaf { token: Token { kind, range: Range { start, end: start } }, is_missing: true }
    }

    fn count_recovery(&mut self) -> Result<(), Stopped> {
        if self.recoveries == RECOVERIES_MAX {
            let at = self.token(0).range.start;
            self.report(at, &format!("error recovery attempt limit exceeded: {RECOVERIES_MAX}"));
            self.is_stopped = true;
            return Err(Stopped);
        }
        self.recoveries += 1;
        Ok(())
    }

    fn recover(&mut self) -> Result<(), Stopped> {
        self.count_recovery()?;
        let mut skipped = 0;
        let bit = 1u64 << self.place.number;
        if self.last_fault_at == Some(self.at) && self.fault_places & bit != 0 {
            self.advance();
            skipped += 1;
        }
        self.last_fault_at = Some(self.at);
        self.fault_places |= bit;
        let until = self.recovery_set();
        while self.kind(0) != TokenKind::EndOfInput && !until.contains(self.kind(0)) {
            if skipped >= SKIPPED_MAX {
                return Err(self.stop(format!("error recovery token lookahead limit exceeded: {SKIPPED_MAX}")));
            }
            self.advance();
            skipped += 1;
        }
        Ok(())
    }

    /// Gives up because of a limit, unless reading was already given up.
    fn stop(&mut self, message: String) -> Stopped {
        if !self.is_stopped {
            self.issues.push(Issue::new(Location::NONE, message));
            self.is_stopped = true;
        }
        Stopped
    }

    fn report(&mut self, offset: u32, message: &str) {
        if self.is_stopped {
            return;
        }
        let location = self.source.location_of(offset);
        let message = if self.reports < REPORTS_MAX {
            self.reports += 1;
            format!("Syntax error: {message}")
        } else {
            self.is_stopped = true;
            format!("Syntax error: More than {REPORTS_MAX} syntax errors")
        };
        self.issues.push(Issue::new(location, message));
    }

    fn report_fault(&mut self, fault: RuleFailure) {
        if self.is_recovering {
            return;
        }
        self.is_recovering = true;
        match fault {
            RuleFailure::Mismatch => {
                let token = self.token(0);
                let message = format!("mismatched input {} expecting {}", self.quoted(token), self.expected());
                self.report(token.range.start, &message);
            }
            RuleFailure::NoViable(first, last) => {
                let tokens = self.tokens;
                let (first, last) = (tokens.tokens[first], tokens.tokens[last]);
                let message = self.no_viable(first, last);
                self.report(last.range.start, &message);
            }
            RuleFailure::Stopped => {}
        }
    }

    fn report_unwanted(&mut self) {
        if self.is_recovering {
            return;
        }
        self.is_recovering = true;
        let token = self.token(0);
        let message = format!("extraneous input {} expecting {}", self.quoted(token), self.expected());
        self.report(token.range.start, &message);
    }

    fn report_missing(&mut self) {
        if self.is_recovering {
            return;
        }
        self.is_recovering = true;
        let token = self.token(0);
        let message = format!("missing {} at {}", self.expected(), self.quoted(token));
        self.report(token.range.start, &message);
    }

    fn quoted(&self, token: Token) -> String {
        match token.kind {
            TokenKind::EndOfInput => "'<EOF>'".to_owned(),
            _ => quote(&self.text(token.range)),
        }
    }

    fn no_viable(&self, first: Token, last: Token) -> String {
        if first.kind == TokenKind::EndOfInput {
            return "no viable alternative at input '<EOF>'".to_owned();
        }
        // White space and comments between the tokens are shown; what the lexer could not read is not.
        let mut input = String::new();
        let mut from = first.range.start;
        for fault in &self.tokens.faults {
            if fault.range.start >= from && fault.range.end <= last.range.end {
                input.push_str(&self.text(Range { start: from, end: fault.range.start }));
                from = fault.range.end;
            }
        }
        input.push_str(&self.text(Range { start: from, end: last.range.end }));
        let mut characters = input.chars();
        characters.next();
        match characters.as_str() {
            word @ ("true" | "false" | "null") => format!("mismatched input '{word}' expecting IDENTIFIER"),
            _ => format!("no viable alternative at input {}", quote(&input)),
        }
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}
