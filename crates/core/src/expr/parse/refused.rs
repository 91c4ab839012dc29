//! The syntax of Python that is read only to be refused by its right name.

use super::refusal::Refusal;
use super::{Outcome, Parsed, Parser};
use crate::expr::error::{SyntaxError, SyntaxKind};
use crate::expr::lex::Token;

impl Parser<'_> {
    pub(super) fn awaited(&mut self) -> Outcome {
        let offset = self.offset();
        if !self.eat("await") {
            return self.primary();
        }
        let _awaited: Parsed = self.primary()?;
        Ok(Err(Refusal::unsupported("Await", offset)))
    }

    /// An atom with what hangs on it. The last one is the outermost node, so it gives the name.
    fn primary(&mut self) -> Outcome {
        let offset = self.offset();
        let mut result = self.atom()?;
        loop {
            if self.eat(".") {
                self.name()?;
                result = Err(Refusal::unsupported("Attribute", offset));
            } else if self.eat("(") {
                self.arguments()?;
                result = Err(Refusal::new(SyntaxKind::Call, offset));
            } else if self.eat("[") {
                self.subscript()?;
                result = Err(Refusal::unsupported("Subscript", offset));
            } else {
                return Ok(result);
            }
        }
    }

    fn name(&mut self) -> Result<(), SyntaxError> {
        if !matches!(self.token(), Token::Name(_)) {
            return Err(self.unexpected());
        }
        self.next += 1;
        Ok(())
    }

    /// After `(`: a group, which is its content, or something refused.
    pub(super) fn group(&mut self, offset: usize) -> Outcome {
        if self.eat(")") {
            return Ok(Err(Refusal::unsupported("Tuple", offset)));
        }
        if self.is("yield") {
            return self.generator_yield(offset);
        }
        let starred = self.is("*");
        let first = self.element()?;
        if self.clauses()? {
            self.expect(")")?;
            return Ok(Err(Refusal::unsupported("GeneratorExp", offset)));
        }
        if self.is(",") {
            self.elements_until(")")?;
            return Ok(Err(Refusal::unsupported("Tuple", offset)));
        }
        if starred {
            return Err(SyntaxError::invalid("cannot use starred expression here", offset));
        }
        self.expect(")")?;
        Ok(first)
    }

    fn generator_yield(&mut self, offset: usize) -> Outcome {
        self.expect("yield")?;
        if self.eat("from") {
            let _source: Parsed = self.expression()?;
            self.expect(")")?;
            return Ok(Err(Refusal::unsupported("YieldFrom", offset)));
        }
        if !self.is(")") {
            let _value: Parsed = self.element()?;
        }
        self.elements_until(")")?;
        Ok(Err(Refusal::unsupported("Yield", offset)))
    }

    /// After `[` where an operand is expected.
    pub(super) fn list(&mut self, offset: usize) -> Outcome {
        if self.eat("]") {
            return Ok(Err(Refusal::unsupported("List", offset)));
        }
        let _first: Parsed = self.element()?;
        let name = if self.clauses()? { "ListComp" } else { "List" };
        self.elements_until("]")?;
        Ok(Err(Refusal::unsupported(name, offset)))
    }

    /// After `{`.
    pub(super) fn braces(&mut self, offset: usize) -> Outcome {
        if self.eat("}") {
            return Ok(Err(Refusal::unsupported("Dict", offset)));
        }
        let is_dict = self.pair()?;
        let name = match (is_dict, self.clauses()?) {
            (true, true) => "DictComp",
            (true, false) => "Dict",
            (false, true) => "SetComp",
            (false, false) => "Set",
        };
        while self.eat(",") && !self.is("}") {
            if self.pair()? != is_dict {
                return Err(self.unexpected());
            }
        }
        self.expect("}")?;
        Ok(Err(Refusal::unsupported(name, offset)))
    }

    /// One part of `{...}`; whether it belongs to a dictionary.
    fn pair(&mut self) -> Result<bool, SyntaxError> {
        if self.eat("**") {
            let _mapping: Parsed = self.expression()?;
            return Ok(true);
        }
        let _key: Parsed = self.element()?;
        if !self.eat(":") {
            return Ok(false);
        }
        let _value: Parsed = self.expression()?;
        Ok(true)
    }

    /// `, element ...` with an optional last comma, and the closing bracket.
    fn elements_until(&mut self, close: &str) -> Result<(), SyntaxError> {
        while self.eat(",") && !self.is(close) {
            let _element: Parsed = self.element()?;
        }
        self.expect(close)
    }

    fn element(&mut self) -> Outcome {
        if self.eat("*") { self.nested(|parser| parser.binary(0)) } else { self.named() }
    }

    /// An expression, or `name := expression`.
    fn named(&mut self) -> Outcome {
        let offset = self.offset();
        if !matches!(self.token(), Token::Name(_)) || *self.second_token() != Token::Symbol(":=") {
            return self.expression();
        }
        self.next += 2;
        let _value: Parsed = self.expression()?;
        Ok(Err(Refusal::unsupported("NamedExpr", offset)))
    }

    /// `for x in y if z ...`; whether there was one.
    fn clauses(&mut self) -> Result<bool, SyntaxError> {
        let found = self.is("for") || self.is("async");
        while self.is("for") || self.eat("async") {
            self.expect("for")?;
            self.targets()?;
            let _source: Parsed = self.nested(Self::disjunction)?;
            while self.eat("if") {
                let _condition: Parsed = self.nested(Self::disjunction)?;
            }
        }
        Ok(found)
    }

    /// The targets of a comprehension, up to and with `in`.
    fn targets(&mut self) -> Result<(), SyntaxError> {
        loop {
            self.eat("*");
            let _target: Parsed = self.nested(|parser| parser.binary(0))?;
            if !self.eat(",") || self.is("in") {
                return self.expect("in");
            }
        }
    }

    /// After the `(` of a call.
    fn arguments(&mut self) -> Result<(), SyntaxError> {
        while !self.is(")") {
            let is_keyword =
                matches!(self.token(), Token::Name(_)) && *self.second_token() == Token::Symbol("=");
            if is_keyword {
                self.next += 2;
            }
            if is_keyword || self.eat("*") || self.eat("**") {
                let _value: Parsed = self.expression()?;
            } else {
                let _value: Parsed = self.named()?;
                self.clauses()?;
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")
    }

    /// After the `[` behind an operand.
    fn subscript(&mut self) -> Result<(), SyntaxError> {
        loop {
            if !self.is(":") {
                let _index: Parsed = self.element()?;
            }
            while self.eat(":") {
                if !self.is(":") && !self.is(",") && !self.is("]") {
                    let _bound: Parsed = self.expression()?;
                }
            }
            if !self.eat(",") || self.is("]") {
                return self.expect("]");
            }
        }
    }

    /// After `lambda`.
    pub(super) fn lambda(&mut self, offset: usize) -> Outcome {
        while !self.is(":") {
            let is_marker = self.eat("*") || self.eat("/");
            if !is_marker || matches!(self.token(), Token::Name(_)) {
                self.eat("**");
                self.name()?;
            }
            if self.eat("=") {
                let _default: Parsed = self.expression()?;
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(":")?;
        let _body: Parsed = self.expression()?;
        Ok(Err(Refusal::unsupported("Lambda", offset)))
    }
}
