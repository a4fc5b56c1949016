//! The Liquid that templates are written in: the standard tags and filters, those that make large values with a bound.
//!
//! Left out are `include` and `render`, which read other files, and `ifchanged`, `cycle` and `tablerow`, which keep text
//! without a bound or are for web pages.

use std::{fmt, io::Write, sync::LazyLock};

use liquid_core::{
    BlockReflection, Error, Expression, Filter, FilterReflection, Language, ParseBlock,
    ParseFilter, Renderable, Result, Runtime, TagBlock, TagTokenIter, Template, Value, ValueView,
    model::KString, parser::FilterArguments,
};
use liquid_lib::stdlib;

use super::{
    limits::{Bounded, VALUE_LIMIT, charge, too_large},
    notify::NotifyTag,
};
use crate::prompts::scan::BRACE;

/// How many items `uniq` compares with each other.
const UNIQ_LIMIT: usize = 2_000;

/// The language.
pub(super) fn language() -> &'static Language {
    static LANGUAGE: LazyLock<Language> = LazyLock::new(build);
    &LANGUAGE
}

fn build() -> Language {
    let mut language = Language::empty();
    let blocks: [Box<dyn ParseBlock>; 7] = [
        Raw.into(),
        stdlib::IfBlock.into(),
        stdlib::UnlessBlock.into(),
        stdlib::CaseBlock.into(),
        stdlib::ForBlock.into(),
        stdlib::CommentBlock.into(),
        Capture.into(),
    ];
    for block in blocks {
        let name = block.reflection().start_tag().to_owned();
        language.blocks.register(name, block);
    }
    let tags: [Box<dyn liquid_core::ParseTag>; 6] = [
        stdlib::AssignTag.into(),
        stdlib::BreakTag.into(),
        stdlib::ContinueTag.into(),
        stdlib::IncrementTag.into(),
        stdlib::DecrementTag.into(),
        NotifyTag.into(),
    ];
    for tag in tags {
        let name = tag.reflection().tag().to_owned();
        language.tags.register(name, tag);
    }
    for inner in filters() {
        let name = inner.reflection().name().to_owned();
        language.filters.register(name, Measured(inner).into());
    }
    language
}

fn filters() -> Vec<Box<dyn ParseFilter>> {
    vec![
        stdlib::Abs.into(),
        stdlib::Append.into(),
        stdlib::AtLeast.into(),
        stdlib::AtMost.into(),
        stdlib::Capitalize.into(),
        stdlib::Ceil.into(),
        stdlib::Compact.into(),
        stdlib::Concat.into(),
        stdlib::Date.into(),
        stdlib::Default.into(),
        stdlib::DividedBy.into(),
        stdlib::Downcase.into(),
        stdlib::Escape.into(),
        stdlib::EscapeOnce.into(),
        stdlib::First.into(),
        stdlib::Floor.into(),
        stdlib::Join.into(),
        stdlib::Last.into(),
        stdlib::Lstrip.into(),
        stdlib::Map.into(),
        stdlib::Minus.into(),
        stdlib::Modulo.into(),
        stdlib::NewlineToBr.into(),
        stdlib::Plus.into(),
        stdlib::Prepend.into(),
        stdlib::Remove.into(),
        stdlib::RemoveFirst.into(),
        stdlib::Replace.into(),
        stdlib::ReplaceFirst.into(),
        stdlib::Reverse.into(),
        stdlib::Round.into(),
        stdlib::Rstrip.into(),
        stdlib::Size.into(),
        stdlib::Slice.into(),
        stdlib::Sort.into(),
        stdlib::SortNatural.into(),
        stdlib::Split.into(),
        stdlib::Strip.into(),
        stdlib::StripHtml.into(),
        stdlib::StripNewlines.into(),
        stdlib::Times.into(),
        stdlib::Truncate.into(),
        stdlib::TruncateWords.into(),
        stdlib::Uniq.into(),
        stdlib::Upcase.into(),
        stdlib::UrlDecode.into(),
        stdlib::UrlEncode.into(),
        stdlib::Where.into(),
    ]
}

/// A filter whose result is measured, and what would be too large is not made.
#[derive(Clone)]
struct Measured(Box<dyn ParseFilter>);

impl ParseFilter for Measured {
    fn parse(&self, arguments: FilterArguments<'_>) -> Result<Box<dyn Filter>> {
        let positional: Vec<Expression> = arguments.positional.collect();
        let inner = self.0.parse(FilterArguments {
            positional: Box::new(positional.clone().into_iter()),
            keyword: arguments.keyword,
        })?;
        let name = self.0.reflection().name().to_owned();
        Ok(Box::new(MeasuredFilter { name, inner, positional }))
    }

    fn reflection(&self) -> &dyn FilterReflection {
        self.0.reflection()
    }
}

#[derive(Debug)]
struct MeasuredFilter {
    name: String,
    inner: Box<dyn Filter>,
    positional: Vec<Expression>,
}

impl fmt::Display for MeasuredFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl MeasuredFilter {
    fn argument(&self, index: usize, runtime: &dyn Runtime) -> Result<String> {
        let Some(argument) = self.positional.get(index) else { return Ok(String::new()) };
        Ok(argument.evaluate(runtime)?.to_kstr().into_owned().into_string())
    }

    /// Refuses what would multiply what it is given beyond the bound.
    fn check(&self, input: &dyn ValueView, runtime: &dyn Runtime) -> Result<()> {
        let made = match self.name.as_str() {
            "replace" => {
                let (text, found) = (input.to_kstr(), self.argument(0, runtime)?);
                let count = text.matches(found.as_str()).count();
                text.len().saturating_add(count.saturating_mul(self.argument(1, runtime)?.len()))
            }
            "join" => {
                let count = input.as_array().map_or(0, |array| array.values().count());
                count.saturating_mul(self.argument(0, runtime)?.len().max(1))
            }
            "uniq" if input.as_array().is_some_and(|it| it.values().count() > UNIQ_LIMIT) => {
                return Err(Error::with_msg(format!("`uniq` takes at most {UNIQ_LIMIT} items")));
            }
            "date" => {
                let format = self.argument(0, runtime)?;
                let widths = format.split(|it: char| !it.is_ascii_digit());
                if widths.into_iter().any(|width| width.len() > 2) {
                    return Err(Error::with_msg("`date` takes a width of at most 99"));
                }
                0
            }
            _ => 0,
        };
        if made > VALUE_LIMIT { Err(Error::with_msg(too_large())) } else { Ok(()) }
    }
}

impl Filter for MeasuredFilter {
    fn evaluate(&self, input: &dyn ValueView, runtime: &dyn Runtime) -> Result<Value> {
        self.check(input, runtime)?;
        let value = self.inner.evaluate(input, runtime)?;
        charge(runtime, &value)?;
        Ok(value)
    }
}

/// `{% raw %}…{% endraw %}`, with the braces that were hidden from the parser.
#[derive(Debug, Clone, Copy)]
struct Raw;

impl BlockReflection for Raw {
    fn start_tag(&self) -> &'static str {
        "raw"
    }

    fn end_tag(&self) -> &'static str {
        "endraw"
    }

    fn description(&self) -> &'static str {
        "Leaves its content as it is."
    }
}

impl ParseBlock for Raw {
    fn parse(
        &self,
        mut arguments: TagTokenIter<'_>,
        mut tokens: TagBlock<'_, '_>,
        _: &Language,
    ) -> Result<Box<dyn Renderable>> {
        arguments.expect_nothing()?;
        let text = tokens.escape_liquid(false)?.replace(BRACE, "{");
        tokens.assert_empty();
        Ok(Box::new(Verbatim(text)))
    }

    fn reflection(&self) -> &dyn BlockReflection {
        self
    }
}

#[derive(Debug)]
struct Verbatim(String);

impl Renderable for Verbatim {
    fn render_to(&self, writer: &mut dyn Write, _: &dyn Runtime) -> Result<()> {
        writer.write_all(self.0.as_bytes()).map_err(|error| Error::with_msg(error.to_string()))
    }
}

/// `{% capture name %}…{% endcapture %}`, whose text is bounded while it grows.
#[derive(Debug, Clone, Copy)]
struct Capture;

impl BlockReflection for Capture {
    fn start_tag(&self) -> &'static str {
        "capture"
    }

    fn end_tag(&self) -> &'static str {
        "endcapture"
    }

    fn description(&self) -> &'static str {
        "Keeps what is rendered in a variable."
    }
}

impl ParseBlock for Capture {
    fn parse(
        &self,
        mut arguments: TagTokenIter<'_>,
        mut tokens: TagBlock<'_, '_>,
        options: &Language,
    ) -> Result<Box<dyn Renderable>> {
        let name = arguments.expect_next("expected a name")?.expect_identifier().into_result()?;
        let name = KString::from_ref(name);
        arguments.expect_nothing()?;
        let content = Template::new(tokens.parse_all(options)?);
        Ok(Box::new(Captured { name, content }))
    }

    fn reflection(&self) -> &dyn BlockReflection {
        self
    }
}

#[derive(Debug)]
struct Captured {
    name: KString,
    content: Template,
}

impl Renderable for Captured {
    fn render_to(&self, _: &mut dyn Write, runtime: &dyn Runtime) -> Result<()> {
        let mut text = Bounded::new();
        let rendered = self.content.render_to(&mut text, runtime);
        if text.reason().is_some() {
            return Err(Error::with_msg(too_large()));
        }
        rendered?;
        runtime.set_global(self.name.clone(), Value::scalar(text.into_text()));
        Ok(())
    }
}
