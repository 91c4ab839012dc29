//! Nodes from parser events, within bounds: an alias is counted as what it stands for before anything is
//! copied, and one that stands for itself is refused.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};

use super::prescan::too_many;
use super::{Bounds, Loosened, MAX_DEPTH, Place, invalid};
use crate::diagnostic::{Diagnostic, Position};

/// How a scalar is written; decides how a place inside its text maps to the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Block,
    /// Not a scalar.
    Collection,
}

/// A node whose tag is not resolved yet.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) content: Content,
    pub(super) tag: Option<String>,
    pub(super) place: Place,
    weight: Weight,
}

#[derive(Debug)]
pub(super) enum Content {
    Scalar(String),
    Seq(Vec<Rc<Raw>>),
    Map(Vec<(Rc<Raw>, Rc<Raw>)>),
}

/// What a node costs wherever it is used.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
    height: usize,
}

impl Weight {
    fn add(&mut self, inner: Self) {
        self.nodes += inner.nodes;
        self.bytes += inner.bytes;
        self.height = self.height.max(inner.height + 1);
    }
}

/// A collection that is still open.
struct Open {
    children: Vec<Rc<Raw>>,
    is_map: bool,
    anchor: usize,
    tag: Option<String>,
    place: Place,
    weight: Weight,
}

struct Builder<'a> {
    source: &'a Loosened,
    text: &'a str,
    bounds: Bounds,
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Raw>>,
    names: HashSet<&'a str>,
    root: Option<Rc<Raw>>,
    total: Weight,
    /// The last character that was looked up, and its byte.
    cursor: (usize, usize),
}

/// Builds the only document of the stream; an empty stream is an empty scalar.
pub(super) fn build(source: &Loosened, bounds: Bounds) -> Result<Rc<Raw>, Diagnostic> {
    let text = source.text.as_str();
    let mut builder = Builder {
        source,
        text,
        bounds,
        open: Vec::new(),
        anchors: HashMap::new(),
        names: HashSet::new(),
        root: None,
        total: Weight::default(),
        cursor: (0, 0),
    };
    let mut documents = 0;
    let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) =
            event.map_err(|error| invalid(error.info(), builder.position(*error.marker())))?;
        if matches!(event, Event::DocumentStart(_)) {
            documents += 1;
            if documents > 1 {
                return Err(invalid(
                    "more than one document; a flow is a single one",
                    builder.position(span.start),
                ));
            }
        }
        builder.event(event, span)?;
    }
    Ok(builder.root.unwrap_or_else(|| Rc::new(empty())))
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Diagnostic> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd => Ok(()),
            Event::DocumentStart(_) | Event::DocumentEnd => Ok(()),
            Event::Alias(anchor) => {
                let Some(target) = self.anchors.get(&anchor).map(Rc::clone) else {
                    return Err(invalid(
                        "an alias may not stand for a value that contains it",
                        self.position(span.start),
                    ));
                };
                self.count(target.weight, span)?;
                self.place(target);
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.note_anchor(anchor, span)?;
                let weight = Weight { nodes: 1, bytes: text.len(), height: 0 };
                self.count(weight, span)?;
                let place = self.place_of(span, style_of(style));
                let raw =
                    Raw { content: Content::Scalar(text.into_owned()), tag: full_tag(tag), place, weight };
                self.finish(raw, anchor);
                Ok(())
            }
            Event::SequenceStart(anchor, tag) => self.begin(false, anchor, full_tag(tag), span),
            Event::MappingStart(anchor, tag) => self.begin(true, anchor, full_tag(tag), span),
            Event::SequenceEnd | Event::MappingEnd => {
                self.end();
                Ok(())
            }
        }
    }

    fn begin(
        &mut self,
        is_map: bool,
        anchor: usize,
        tag: Option<String>,
        span: Span,
    ) -> Result<(), Diagnostic> {
        self.note_anchor(anchor, span)?;
        let weight = Weight { nodes: 1, bytes: 0, height: 0 };
        self.count(weight, span)?;
        let place = self.place_of(span, Style::Collection);
        self.open.push(Open { children: Vec::new(), is_map, anchor, tag, place, weight });
        Ok(())
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let content = if open.is_map {
            let mut entries = Vec::with_capacity(open.children.len() / 2);
            let mut children = open.children.into_iter();
            while let (Some(key), Some(value)) = (children.next(), children.next()) {
                entries.push((key, value));
            }
            Content::Map(entries)
        } else {
            Content::Seq(open.children)
        };
        self.finish(Raw { content, tag: open.tag, place: open.place, weight: open.weight }, open.anchor);
    }

    fn finish(&mut self, raw: Raw, anchor: usize) {
        let raw = Rc::new(raw);
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&raw));
        }
        self.place(raw);
    }

    fn place(&mut self, raw: Rc<Raw>) {
        match self.open.last_mut() {
            Some(parent) => {
                parent.weight.add(raw.weight);
                parent.children.push(raw);
            }
            None => self.root = Some(raw),
        }
    }

    fn count(&mut self, weight: Weight, span: Span) -> Result<(), Diagnostic> {
        let at = self.position(span.start);
        self.total.nodes += weight.nodes;
        self.total.bytes += weight.bytes;
        if self.open.len() + weight.height >= MAX_DEPTH {
            return Err(invalid(format!("collections are nested deeper than {MAX_DEPTH} levels"), at));
        }
        if self.total.nodes > self.bounds.nodes {
            return Err(too_many(self.bounds.nodes, at));
        }
        if self.total.bytes > self.bounds.bytes {
            return Err(invalid("the document becomes too large when its aliases are written out", at));
        }
        Ok(())
    }

    /// The parser lets a name be anchored twice, PyYAML does not. A node's span begins with its properties.
    fn note_anchor(&mut self, anchor: usize, span: Span) -> Result<(), Diagnostic> {
        if anchor == 0 {
            return Ok(());
        }
        let start = self.byte_of(span.start.index());
        let mut words = self
            .text
            .get(start..)
            .unwrap_or_default()
            .split([' ', '\t', '\n', '\r', ',', '[', ']', '{', '}']);
        match words.find_map(|word| word.strip_prefix('&')) {
            Some(name) if !self.names.insert(name) => {
                Err(invalid(format!("the anchor '{name}' is defined twice"), self.position(span.start)))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The byte of a character; asked in rising order, so each call goes on where the last one stopped.
    fn byte_of(&mut self, index: usize) -> usize {
        let (chars, bytes) = self.cursor;
        if index > chars {
            let rest = self.text.get(bytes..).unwrap_or_default();
            let step = rest.char_indices().nth(index - chars).map_or(rest.len(), |(at, _)| at);
            self.cursor = (index, bytes + step);
        }
        self.cursor.1
    }

    /// The position in the document as it was written.
    fn position(&self, marker: Marker) -> Position {
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let line = number(marker.line()).max(1);
        let column = number(marker.col()).saturating_sub(self.source.added_to(line));
        Position::new(line, column.saturating_add(1), 1)
    }

    fn place_of(&self, span: Span, style: Style) -> Place {
        let mut at = self.position(span.start);
        if span.end.line() == span.start.line() {
            let width = span.end.col().saturating_sub(span.start.col());
            at.length = u32::try_from(width).unwrap_or(u32::MAX).max(1);
        }
        Place { at, chars: (span.start.index(), span.end.index()), style }
    }
}

fn empty() -> Raw {
    let place = Place { at: Position::new(1, 1, 0), chars: (0, 0), style: Style::Plain };
    Raw { content: Content::Scalar(String::new()), tag: None, place, weight: Weight::default() }
}

fn full_tag(tag: Option<std::borrow::Cow<'_, saphyr_parser::Tag>>) -> Option<String> {
    tag.map(|tag| format!("{}{}", tag.handle, tag.suffix))
}

const fn style_of(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
    }
}
