//! The grammar of a graph, by recursive descent with Python's precedence: subscripts and calls, `%`, `>>`,
//! `&`, `|`.

use super::ast::{Argument, Expr, ExprKind, Literal, Statement};
use super::lex::{Kind, MAX_DEPTH, Token};
use super::{Problem, Span};

pub(super) fn statements(text: &str, tokens: &[Token]) -> Result<Vec<Statement>, Problem> {
    let mut parser = Parser { text, tokens, at: 0 };
    let mut statements = Vec::new();
    loop {
        if *parser.kind() == Kind::End {
            return Ok(statements);
        }
        if !parser.eat(&Kind::Newline) {
            parser.line(&mut statements)?;
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
}

impl Parser<'_> {
    fn kind(&self) -> &Kind {
        self.kind_at(0)
    }

    fn kind_at(&self, ahead: usize) -> &Kind {
        self.tokens.get(self.at + ahead).map_or(&Kind::End, |token| &token.kind)
    }

    fn span(&self) -> Span {
        let last = Span::new(self.text.len(), self.text.len());
        self.tokens.get(self.at).map_or(last, |token| token.span)
    }

    fn eat(&mut self, kind: &Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, kind: &Kind, what: &str) -> Result<Span, Problem> {
        let span = self.span();
        if self.eat(kind) { Ok(span) } else { Err(self.unexpected(what)) }
    }

    /// What is wrong at this token, in the words of somebody who writes graphs.
    fn unexpected(&self, wanted: &str) -> Problem {
        let span = self.span();
        match self.kind() {
            Kind::Newline | Kind::End => {
                let back = self.tokens.get(self.at.wrapping_sub(1));
                let after_shift = back.is_some_and(|token| token.kind == Kind::Shift);
                let span = back.map_or(span, |token| token.span);
                let problem = Problem::new(format!("invalid syntax: the line ends where {wanted} is expected"), span);
                if after_shift {
                    return problem.help("a line may not end with '>>' unless the chain stands in parentheses");
                }
                problem
            }
            Kind::Minus => Problem::new("'-' has no place between names", span)
                .help("a task whose name has a '-' cannot be named in a graph: rename it, e.g. my_task"),
            Kind::Dot => Problem::new("a graph has no attributes except policies", span)
                .help("write e.g. 'a.task.retries = 2'; possible are fail_policy, retries, timeout_sec, trigger_policy"),
            Kind::Shift if matches!(self.tokens.get(self.at.wrapping_sub(1)), None | Some(Token { kind: Kind::Newline, .. })) => {
                Problem::new("invalid syntax: a line may not begin with '>>'", span)
                    .help("put the chain in parentheses, or end the line before with a backslash")
            }
            Kind::Name | Kind::Literal(_) | Kind::Shift | Kind::And | Kind::Or | Kind::Percent | Kind::Open
            | Kind::Close | Kind::OpenSquare | Kind::CloseSquare | Kind::Comma | Kind::Semicolon | Kind::Equals
            | Kind::Plus => {
                let found = self.text.get(span.start..span.end).unwrap_or_default();
                Problem::new(format!("invalid syntax: found '{found}' where {wanted} is expected"), span)
            }
        }
    }

    /// Statements up to the end of a line; one `;` may stand behind the last.
    fn line(&mut self, statements: &mut Vec<Statement>) -> Result<(), Problem> {
        loop {
            statements.push(self.statement()?);
            if self.eat(&Kind::Newline) {
                return Ok(());
            }
            if !self.eat(&Kind::Semicolon) {
                let problem = self.unexpected("an operator or the end of the statement");
                return Err(match (self.kind(), problem.help.is_some()) {
                    (Kind::Name, false) => problem.help(
                        "statements stand on lines of their own; a folded text ('graph: >') has only one, write 'graph: |'",
                    ),
                    _ => problem,
                });
            }
            if self.eat(&Kind::Newline) {
                return Ok(());
            }
        }
    }

    fn statement(&mut self) -> Result<Statement, Problem> {
        if matches!((self.kind(), self.kind_at(1)), (Kind::Name, Kind::Equals)) {
            let name = self.span();
            self.at += 2;
            let value = self.tuple(&Kind::Newline)?;
            return Ok(Statement::Binding { name, value });
        }
        if matches!((self.kind(), self.kind_at(1), self.kind_at(2)), (Kind::Name, Kind::Dot, Kind::Name)) {
            return self.policy();
        }
        let (items, _) = self.sequence(&Kind::Newline)?;
        Ok(Statement::Expressions(items))
    }

    fn policy(&mut self) -> Result<Statement, Problem> {
        let task = self.span();
        self.at += 1;
        let wrong = |span| {
            Problem::new("a graph has no attributes except policies", span)
                .help("write e.g. 'a.task.retries = 2'; possible are fail_policy, retries, timeout_sec, trigger_policy")
        };
        let dot = self.span();
        self.at += 1;
        let middle = self.span();
        self.at += 1;
        let is_task = self.text.get(middle.start..middle.end) == Some("task");
        if !is_task || !self.eat(&Kind::Dot) || *self.kind() != Kind::Name {
            return Err(wrong(dot.to(middle)));
        }
        let field = self.span();
        self.at += 1;
        if !self.eat(&Kind::Equals) {
            return Err(wrong(dot.to(field)));
        }
        let value = self.tuple(&Kind::Newline)?;
        Ok(Statement::Policy { task, field, value })
    }

    /// Expressions with commas between, and whether there was a comma.
    fn sequence(&mut self, end: &Kind) -> Result<(Vec<Expr>, bool), Problem> {
        let mut items = vec![self.any()?];
        let mut comma = false;
        while self.eat(&Kind::Comma) {
            comma = true;
            if self.kind() == end || matches!(self.kind(), Kind::Newline | Kind::Semicolon) {
                break;
            }
            items.push(self.any()?);
        }
        Ok((items, comma))
    }

    /// A tuple, or the lone expression it would be without a comma.
    fn tuple(&mut self, end: &Kind) -> Result<Expr, Problem> {
        let start = self.span();
        let (mut items, comma) = self.sequence(end)?;
        match items.pop() {
            Some(only) if !comma => Ok(only),
            last => {
                let span = last.as_ref().map_or(start, |item| start.to(item.span));
                items.extend(last);
                Ok(Expr { kind: ExprKind::List { items, tuple: true }, span })
            }
        }
    }

    fn chain(
        &mut self,
        operator: &Kind,
        make: fn(Vec<Expr>) -> ExprKind,
        next: fn(&mut Self) -> Result<Expr, Problem>,
    ) -> Result<Expr, Problem> {
        let first = next(self)?;
        if self.kind() != operator {
            return Ok(first);
        }
        let start = first.span;
        let mut items = vec![first];
        while self.eat(operator) {
            items.push(next(self)?);
        }
        let end = items.last().map_or(start, |item| item.span);
        Ok(Expr { kind: make(items), span: start.to(end) })
    }

    fn any(&mut self) -> Result<Expr, Problem> {
        self.chain(&Kind::Or, ExprKind::Any, Self::all)
    }

    fn all(&mut self) -> Result<Expr, Problem> {
        self.chain(&Kind::And, ExprKind::All, Self::shift)
    }

    fn shift(&mut self) -> Result<Expr, Problem> {
        self.chain(&Kind::Shift, ExprKind::Shift, Self::until)
    }

    fn until(&mut self) -> Result<Expr, Problem> {
        let mut left = self.postfix()?;
        let mut depth = 0;
        while self.eat(&Kind::Percent) {
            let right = self.postfix()?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Until(Box::new(left), Box::new(right)), span };
            depth = self.deeper(depth, span)?;
        }
        Ok(left)
    }

    fn deeper(&self, depth: usize, span: Span) -> Result<usize, Problem> {
        if depth >= MAX_DEPTH {
            return Err(Problem::new(format!("loops are nested deeper than {MAX_DEPTH} levels"), span));
        }
        Ok(depth + 1)
    }

    fn postfix(&mut self) -> Result<Expr, Problem> {
        let mut left = self.atom()?;
        let mut depth = 0;
        loop {
            let kind = if self.eat(&Kind::OpenSquare) {
                let index = self.tuple(&Kind::CloseSquare)?;
                ExprKind::Index(Box::new(left), Box::new(index))
            } else if self.eat(&Kind::Open) {
                ExprKind::Call(Box::new(left), self.arguments()?)
            } else {
                return Ok(left);
            };
            let wanted = if matches!(kind, ExprKind::Index(..)) { Kind::CloseSquare } else { Kind::Close };
            let start = match &kind {
                ExprKind::Index(inner, _) | ExprKind::Call(inner, _) => inner.span,
                ExprKind::Name(_)
                | ExprKind::Literal(_)
                | ExprKind::List { .. }
                | ExprKind::Shift(_)
                | ExprKind::All(_)
                | ExprKind::Any(_)
                | ExprKind::Until(..) => self.span(),
            };
            let end = self.expect(&wanted, "the closing bracket")?;
            left = Expr { kind, span: start.to(end) };
            depth = self.deeper(depth, left.span)?;
        }
    }

    fn arguments(&mut self) -> Result<Vec<Argument>, Problem> {
        let mut arguments = Vec::new();
        while *self.kind() != Kind::Close {
            let keyword =
                matches!((self.kind(), self.kind_at(1)), (Kind::Name, Kind::Equals)).then(|| self.span());
            if keyword.is_some() {
                self.at += 2;
            }
            arguments.push(Argument { keyword, value: self.any()? });
            if !self.eat(&Kind::Comma) {
                break;
            }
        }
        Ok(arguments)
    }

    fn atom(&mut self) -> Result<Expr, Problem> {
        let span = self.span();
        let kind = match self.kind() {
            Kind::Name => ExprKind::Name(span),
            Kind::Literal(literal) => ExprKind::Literal(literal.clone()),
            Kind::Minus | Kind::Plus => return self.signed(),
            Kind::Open | Kind::OpenSquare => return self.bracketed(),
            Kind::Shift
            | Kind::And
            | Kind::Or
            | Kind::Percent
            | Kind::Close
            | Kind::CloseSquare
            | Kind::Comma
            | Kind::Semicolon
            | Kind::Equals
            | Kind::Dot
            | Kind::Newline
            | Kind::End => {
                return Err(self.unexpected("a task"));
            }
        };
        self.at += 1;
        Ok(Expr { kind, span })
    }

    fn signed(&mut self) -> Result<Expr, Problem> {
        let start = self.span();
        let negative = *self.kind() == Kind::Minus;
        self.at += 1;
        let span = start.to(self.span());
        let literal = if let Kind::Literal(Literal::Int(value)) = self.kind() {
            Literal::Int(if negative { -value } else { *value })
        } else if let Kind::Literal(Literal::Float(value)) = self.kind() {
            Literal::Float(if negative { -value } else { *value })
        } else {
            return Err(Problem::new("a sign may only stand before a number", start));
        };
        self.at += 1;
        Ok(Expr { kind: ExprKind::Literal(literal), span })
    }

    /// A list, a tuple, or an expression in parentheses, which is just itself.
    fn bracketed(&mut self) -> Result<Expr, Problem> {
        let start = self.span();
        let square = *self.kind() == Kind::OpenSquare;
        let closing = if square { Kind::CloseSquare } else { Kind::Close };
        self.at += 1;
        let end = self.span();
        if self.eat(&closing) {
            return Ok(Expr {
                kind: ExprKind::List { items: Vec::new(), tuple: !square },
                span: start.to(end),
            });
        }
        let (mut items, comma) = self.sequence(&closing)?;
        let end = self.expect(&closing, "the closing bracket")?;
        let span = start.to(end);
        if square || comma {
            return Ok(Expr { kind: ExprKind::List { items, tuple: !square }, span });
        }
        let kind = items.pop().map_or(ExprKind::List { items, tuple: true }, |only| only.kind);
        Ok(Expr { kind, span })
    }
}
