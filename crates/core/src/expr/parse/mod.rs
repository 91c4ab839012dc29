//! Tokens to a tree.
//!
//! The grammar is Python's for expressions, not only the part that flows use, because the original reads all of it
//! and then names the first node it does not allow. So a parse has three ends: a [`Node`], a [`Refusal`] of
//! something Python has and flows do not, and an error for what is not Python. Of several refusals the original names
//! the one nearest to the root of the tree, and of those the leftmost; see `refusal`. Inside what is refused anyway
//! the grammar is a little more generous than Python's.

mod refusal;
mod refused;

use super::error::{SyntaxError, SyntaxKind};
use super::lex::{self, Positioned, Token};
use super::limits;
use super::node::{Arithmetic, Comparison, Logic, Node, Order, Sign};
use super::value::Value;
use refusal::{Refusal, all, below, both};

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let tokens = lex::tokens(text)?;
    let mut parser = Parser { tokens, next: 0, depth: 0, end: text.len() };
    parser.whole()?.map(|node| *node).map_err(|refusal| refusal.error)
}

/// Boxed on both sides, because results of the recursive functions fill the stack.
type Parsed = Result<Box<Node>, Box<Refusal>>;
type Outcome = Result<Parsed, SyntaxError>;

#[derive(Clone, Copy)]
enum Operator {
    Allowed(Arithmetic),
    Refused(&'static str),
}

/// The binary operators with how strongly they bind. Those of one level associate to the left.
const OPERATORS: [(&str, u8, Operator); 12] = [
    ("|", 1, Operator::Refused("BitOr")),
    ("^", 2, Operator::Refused("BitXor")),
    ("&", 3, Operator::Refused("BitAnd")),
    ("<<", 4, Operator::Refused("LShift")),
    (">>", 4, Operator::Refused("RShift")),
    ("+", 5, Operator::Allowed(Arithmetic::Add)),
    ("-", 5, Operator::Allowed(Arithmetic::Subtract)),
    ("*", 6, Operator::Allowed(Arithmetic::Multiply)),
    ("/", 6, Operator::Allowed(Arithmetic::Divide)),
    ("//", 6, Operator::Refused("FloorDiv")),
    ("%", 6, Operator::Allowed(Arithmetic::Modulo)),
    ("@", 6, Operator::Refused("MatMult")),
];

struct Parser<'a> {
    tokens: Vec<Positioned<'a>>,
    next: usize,
    depth: usize,
    end: usize,
}

impl<'a> Parser<'a> {
    fn token(&self) -> &Token<'a> {
        self.tokens.get(self.next).map_or(&Token::End, |positioned| &positioned.token)
    }

    fn second_token(&self) -> &Token<'a> {
        self.tokens.get(self.next + 1).map_or(&Token::End, |positioned| &positioned.token)
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |positioned| positioned.offset)
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token(), Token::Symbol(found) if *found == symbol)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), SyntaxError> {
        if self.eat(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> SyntaxError {
        let found = match self.token() {
            Token::Symbol(symbol) => format!("'{symbol}'"),
            Token::Name(name) => format!("'{name}'"),
            Token::Reference(root, path) => format!("'{}.{path}'", root.text()),
            Token::Int(_) | Token::Float(_) | Token::Imaginary => "a number".to_owned(),
            Token::Str(_) | Token::Bytes | Token::Formatted => "a string".to_owned(),
            Token::Newline => "a line break outside parentheses".to_owned(),
            Token::End => "the end".to_owned(),
        };
        SyntaxError::invalid(format!("invalid syntax: unexpected {found}"), self.offset())
    }

    /// Every recursion goes through here, so the stack is bounded.
    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        if self.depth >= limits::NESTING {
            return Err(SyntaxError::new(SyntaxKind::TooDeep, self.offset()));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn whole(&mut self) -> Outcome {
        let offset = self.offset();
        let mut result = self.conditional()?;
        while self.eat(",") {
            result = Err(Refusal::unsupported("Tuple", offset));
            if matches!(self.token(), Token::Newline | Token::End) {
                break;
            }
            let _element: Parsed = self.expression()?;
        }
        while *self.token() == Token::Newline {
            self.next += 1;
        }
        if *self.token() == Token::End { Ok(result) } else { Err(self.unexpected()) }
    }

    fn expression(&mut self) -> Outcome {
        self.nested(Self::conditional)
    }

    fn conditional(&mut self) -> Outcome {
        let offset = self.offset();
        if self.eat("lambda") {
            return self.lambda(offset);
        }
        let body = self.disjunction()?;
        if !self.eat("if") {
            return Ok(body);
        }
        let _condition: Parsed = self.disjunction()?;
        self.expect("else")?;
        let _otherwise: Parsed = self.expression()?;
        Ok(Err(Refusal::unsupported("IfExp", offset)))
    }

    fn disjunction(&mut self) -> Outcome {
        self.logic("or", Logic::Or, Self::conjunction)
    }

    fn conjunction(&mut self) -> Outcome {
        self.logic("and", Logic::And, Self::inversion)
    }

    fn logic(&mut self, word: &str, operator: Logic, operand: fn(&mut Self) -> Outcome) -> Outcome {
        let first = operand(self)?;
        if !self.is(word) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.eat(word) {
            operands.push(operand(self)?);
        }
        Ok(below(all(operands.into_iter().map(unboxed)))
            .map(|operands| Box::new(Node::Logic { operator, operands })))
    }

    fn inversion(&mut self) -> Outcome {
        if !self.eat("not") {
            return self.comparison();
        }
        let operand = self.nested(Self::inversion)?;
        Ok(below(operand).map(|operand| Box::new(Node::Not(operand))))
    }

    fn comparison(&mut self) -> Outcome {
        let first = self.binary(0)?;
        let (mut operators, mut operands) = (Vec::new(), Vec::new());
        while let Some(operator) = self.comparison_operator() {
            operators.push(operator);
            operands.push(self.binary(0)?);
        }
        if operators.is_empty() {
            return Ok(first);
        }
        let parts = below(both(both(first, all(operators)), all(operands.into_iter().map(unboxed))));
        Ok(parts.map(|((first, operators), operands)| {
            let rest = operators.into_iter().zip(operands).collect();
            Box::new(Node::Compare { first, rest })
        }))
    }

    fn comparison_operator(&mut self) -> Option<Result<Comparison, Box<Refusal>>> {
        let offset = self.offset();
        let Token::Symbol(symbol) = *self.token() else {
            return None;
        };
        let operator = match symbol {
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Ordered(Order::Less),
            "<=" => Comparison::Ordered(Order::LessEqual),
            ">" => Comparison::Ordered(Order::Greater),
            ">=" => Comparison::Ordered(Order::GreaterEqual),
            "in" => Comparison::In,
            "not" if *self.second_token() == Token::Symbol("in") => {
                self.next += 1;
                Comparison::NotIn
            }
            "is" => {
                self.next += 1;
                let name = if self.eat("not") { "IsNot" } else { "Is" };
                return Some(Err(Refusal::unsupported(name, offset)));
            }
            _ => return None,
        };
        self.next += 1;
        Some(Ok(operator))
    }

    /// Operators that bind at least as strongly as `weakest`.
    fn binary(&mut self, weakest: u8) -> Outcome {
        let mut left = self.unary()?;
        let mut left_level = u8::MAX;
        while let Some((level, operator)) = self.operator(weakest) {
            let right = self.binary(level + 1)?;
            left = join(left, level == left_level, operator, right);
            left_level = level;
        }
        Ok(left)
    }

    fn operator(&mut self, weakest: u8) -> Option<(u8, Result<Arithmetic, Box<Refusal>>)> {
        let offset = self.offset();
        let (_, level, operator) =
            OPERATORS.iter().find(|(symbol, level, _)| *level >= weakest && self.is(symbol))?;
        self.next += 1;
        Some((
            *level,
            match operator {
                Operator::Allowed(operator) => Ok(*operator),
                Operator::Refused(name) => Err(Refusal::unsupported(name, offset)),
            },
        ))
    }

    fn unary(&mut self) -> Outcome {
        let offset = self.offset();
        let operator = if self.eat("-") {
            Some(Sign::Minus)
        } else if self.eat("+") {
            Some(Sign::Plus)
        } else if self.eat("~") {
            None
        } else {
            return self.power();
        };
        let operand = self.nested(Self::unary)?;
        let Some(operator) = operator else {
            return Ok(below(Err(Refusal::unsupported("Invert", offset))));
        };
        Ok(below(operand).map(|operand| Box::new(Node::Sign { operator, operand })))
    }

    fn power(&mut self) -> Outcome {
        let base = self.awaited()?;
        if !self.eat("**") {
            return Ok(base);
        }
        let exponent = self.nested(Self::unary)?;
        Ok(below(both(base, exponent)).map(|(base, exponent)| Box::new(Node::Power { base, exponent })))
    }

    fn atom(&mut self) -> Outcome {
        let offset = self.offset();
        if let Some(leaf) = self.leaf() {
            Ok(leaf)
        } else if self.eat("(") {
            self.group(offset)
        } else if self.eat("[") {
            self.list(offset)
        } else if self.eat("{") {
            self.braces(offset)
        } else {
            Err(self.unexpected())
        }
    }

    #[inline(never)] // Its variables would widen the frame of `atom`, which the stack holds many of.
    fn leaf(&mut self) -> Option<Parsed> {
        let offset = self.offset();
        let leaf = match self.token() {
            Token::Str(_) | Token::Bytes | Token::Formatted => return Some(self.strings()),
            Token::Int(value) => Ok(Node::Constant(Value::Int(value.clone()))),
            Token::Float(value) => Ok(Node::Constant(Value::Float(*value))),
            Token::Symbol("None") => Ok(Node::Constant(Value::None)),
            Token::Symbol("True") => Ok(Node::Constant(Value::Bool(true))),
            Token::Symbol("False") => Ok(Node::Constant(Value::Bool(false))),
            Token::Reference(root, path) => Ok(Node::Reference { root: *root, path: (*path).into() }),
            Token::Name(name) => Err(Refusal::new(SyntaxKind::Name((*name).to_owned()), offset)),
            Token::Symbol("...") => Err(Refusal::unsupported("Ellipsis", offset)),
            Token::Imaginary => Err(Refusal::unsupported("Complex", offset)),
            Token::Symbol(_) | Token::Newline | Token::End => return None,
        };
        self.next += 1;
        Some(leaf.map(Box::new))
    }

    /// Literals that stand side by side are one.
    fn strings(&mut self) -> Parsed {
        let offset = self.offset();
        let mut joined = String::new();
        let mut refused = None;
        loop {
            match self.token() {
                Token::Str(value) => joined.push_str(value),
                Token::Formatted => refused = Some("JoinedStr"),
                Token::Bytes => refused = Some("Bytes"),
                Token::Symbol(_)
                | Token::Name(_)
                | Token::Reference(..)
                | Token::Int(_)
                | Token::Float(_)
                | Token::Imaginary
                | Token::Newline
                | Token::End => break,
            }
            self.next += 1;
        }
        match refused {
            Some(name) => Err(Refusal::unsupported(name, offset)),
            None => Ok(Box::new(Node::Constant(Value::Str(joined)))),
        }
    }
}

/// `left operator right`. If the left side ended with an operator of the same level, the chain grows, so that its length
/// is not depth; in Python's tree the left side is one level down all the same.
#[inline(never)] // As above, for the frame of `binary`.
fn join(left: Parsed, grow: bool, operator: Result<Arithmetic, Box<Refusal>>, right: Parsed) -> Parsed {
    below(both(both(left, operator), right)).map(|((mut left, operator), right)| {
        if let (Node::Chain { rest, .. }, true) = (&mut *left, grow) {
            rest.push((operator, *right));
            return left;
        }
        Box::new(Node::Chain { first: left, rest: vec![(operator, *right)] })
    })
}

fn unboxed(parsed: Parsed) -> Result<Node, Box<Refusal>> {
    parsed.map(|node| *node)
}
